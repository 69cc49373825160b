"""Masks that are known at compile time: none where all lanes are active, fewer lanes where not.

    C[...] = A[ramp(0, 2, 4) ? ramp(0, 1, 4) < 4]     →     C[...] = A[ramp(0, 2, 4)]
    C[...] = A[ramp(0, 2, 4) ? ramp(0, 1, 4) < 2]     →     C[...] = A[ramp(0, 2, 2)], then zeros

The unrolled vectors at the end of a short line have such masks. A strided vector without a mask is
picked from contiguous ones; with one, every lane is a load of its own.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import Broadcast, Expr, Load, const
from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.arith.walk import contains, loads, rewrite
from tilewright.core.dtypes import BOOL
from tilewright.ir.loop.nodes import Func, Stmt, Store
from tilewright.ir.loop.walk import map_exprs, rewrite_stmts


def known_masks(func: Func) -> Func:
    """`func` without masks of which all lanes are active, and short strided loads without any."""
    memo: dict[Expr, Expr] = {}

    def bare(e: Expr) -> Expr:
        # Where an index is checked, that is done where the masks of its loads hold.
        masked = any(load.mask is not None for load in loads(e))
        return rewrite(e, _load, memo) if masked and not contains(e, CheckedIndex) else e

    return replace(func, body=rewrite_stmts(map_exprs(func.body, bare), _store))


def _active(mask: Expr | None) -> range | None:
    """The lanes that are active, if those are known and neighbours."""
    lanes = None if mask is None or mask.lanes == 1 else known_lanes(mask)
    if lanes is None:
        return None
    first = lanes.index(1) if any(lanes) else 0
    active = range(first, first + sum(lanes))
    return active if all(lanes[n] for n in active) else None


def _store(s: Stmt) -> Stmt | None:
    if isinstance(s, Store) and s.mask is not None and _active(s.mask) == range(s.mask.lanes):
        return replace(s, mask=None)
    return None


def _load(e: Expr) -> Expr | None:
    if not isinstance(e, Load) or e.dtype == BOOL:
        return None
    active = _active(e.mask)
    if active == range(e.lanes):
        return replace(e, mask=None)
    index = e.indices[0]
    if active is None or not isinstance(index, Ramp) or index.stride in (0, 1):
        return None
    if not active:
        return Broadcast(const(0, e.dtype), e.lanes)
    first = simplify(index.base + active.start * index.stride)
    if len(active) == 1:
        short: Expr = Broadcast(Load(e.buffer, (first,), e.dtype), 2)
    else:
        short = Load(e.buffer, (Ramp(first, index.stride, len(active)),), e.dtype)
    zeros = Broadcast(const(0, e.dtype), short.lanes)
    picks = (n - active.start if n in active else short.lanes for n in range(e.lanes))
    return Shuffle(short, zeros, tuple(picks))
