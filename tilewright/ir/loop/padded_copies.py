"""Padded copies: buffers that are filled with elements of another one, and zeros outside of it.

padded[y, c] = x[y - 4, c] ? 3 < y & y < H + 4        dimension 0 is x from 4 to before H + 4
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.arith.expr import Binary, Expr, Load, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Stmt, Store
from tilewright.ir.loop.walk import statements_in


@dataclass(frozen=True)
class Inside:
    """What of the dimension `dim` is no padding: from `begin` to before `end`."""

    dim: int
    begin: Expr
    end: Expr


def padded_copies(body: Stmt) -> Mapping[str, tuple[Inside, ...]]:
    """The padded copies that are made in a body, each by one statement."""
    stores: dict[str, list[Store]] = {}
    for s in statements_in(body):
        if isinstance(s, Store):
            stores.setdefault(s.buffer, []).append(s)
    single = {buffer: found[0] for buffer, found in stores.items() if len(found) == 1}
    found = {buffer: tuple(_dimensions(s)) for buffer, s in single.items()}
    return {buffer: dimensions for buffer, dimensions in found.items() if dimensions}


def _dimensions(store: Store) -> Iterator[Inside]:
    value = store.value
    if not isinstance(value, Load) or value.mask is None:
        return
    limits = [c for c in conjuncts(value.mask) if isinstance(c, Binary) and c.op == "lt"]
    limits = [c for c in limits if c.a.dtype == I64]
    for dim, index in enumerate(store.indices):
        begins, ends = [], []
        for condition in limits:
            distance = condition.a - condition.b
            above, below = simplify(distance - index), simplify(distance + index)
            if free_vars(above).isdisjoint(free_vars(index)):
                ends.append(simplify(const(0) - above))
            elif free_vars(below).isdisjoint(free_vars(index)):
                begins.append(simplify(below + 1))
        if len(begins) == len(ends) == 1:
            yield Inside(dim, begins[0], ends[0])
