"""Products of bf16 summed in f32: which axis and which operand does what."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Binary, Cast, Const, Load, Var
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.loop.nodes import Block, Iter, Store
from tilewright.schedule.analysis.blocks import (
    Facts,
    is_simple,
    reductions,
    spatial,
    term_of,
    uses,
)


@dataclass(frozen=True)
class ProductRoles:
    """The axes and operands of a product: `left` moves along the rows, `right` the columns.

    `row` is `None` where there is one row only.
    """

    row: Iter | None
    column: Iter
    depth: Iter
    batch: tuple[Iter, ...]
    left: Load
    right: Load


def product_roles(block: Block, facts: Facts, constants: frozenset[str]) -> ProductRoles | None:
    """The roles of a product of bf16 with a constant, `None` if the block is no such product."""
    axes, sums = spatial(block), reductions(block)
    if not (is_simple(block) and _starts_at_zero(block)) or len(sums) != 1 or not axes:
        return None
    operands, column = _operands(block), axes[-1]
    right = next((o for o in operands if uses(o, column.name)), None)
    left = next((o for o in operands if o is not right), None)
    if right is None or left is None or right.buffer not in constants:
        return None
    if uses(left, column.name) or left.indices[-1] is not Var(sums[0].name):
        return None
    rows = [it for it in axes[:-1] if uses(left, it.name) and not uses(right, it.name)]
    row = rows[-1] if rows else None
    batch = tuple(it for it in axes[:-1] if it is not row)
    plain = all(_is_plain(load, block) for load in (left, right))
    return ProductRoles(row, column, sums[0], batch, left, right) if plain else None


def _starts_at_zero(block: Block) -> bool:
    init = block.init
    return isinstance(init, Store) and isinstance(init.value, Const) and init.value.value == 0


def _operands(block: Block) -> tuple[Load, ...]:
    """The two factors of what is summed, if they are bf16 and the sum is f32."""
    match term_of(block):
        case Binary("mul", Cast(dtype, Load() as a), Cast(_, Load() as b)) if dtype == F32:
            plain = a.mask is None and b.mask is None
            return (a, b) if plain and (a.dtype, b.dtype) == (BF16, BF16) else ()
    return ()


def _is_plain(load: Load, block: Block) -> bool:
    """Whether every index is an axis of its own."""
    names = {it.name for it in block.iters}
    axes = [i.name for i in load.indices if isinstance(i, Var) and i.name in names]
    return len(set(axes)) == len(load.indices)
