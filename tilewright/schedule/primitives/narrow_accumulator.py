"""`narrow_accumulator(block)`: accumulate a sum of widened products in the products' type.

    alloc C: f32[M, N]                              alloc C: f16[M, N]
    block "C" ... init { C[i, j] = 0.0 }      →     block "C" ... init { C[i, j] = 0.0 }
      { C[i, j] += f32(A[i, k] * B[k, j]) }           { C[i, j] += A[i, k] * B[k, j] }
    block "y" ... { y[i, j] = C[i, j] }             block "y" ... { y[i, j] = f32(C[i, j]) }

An expression that widens its products rather than their factors allows this for a few terms
(`tilewright/ops/accumulation.py`). Split a longer reduction with `rfactor` and narrow the parts.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Cast, Const, Expr, Load, binary, cast, const
from tilewright.core.dtypes import DType
from tilewright.ir.loop.nodes import Alloc, Func, Stmt, Store
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.dataflow import allocation, only_buffer
from tilewright.schedule.analysis.reduction import reduction_of
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import AccessRewriter, Extents
from tilewright.schedule.tree import block_spine, target_block


def narrow_accumulator(func: Func, block: str) -> Func:
    """Accumulate in the type of the products, before they are widened."""
    found = target_block(block_spine(func, block))
    buffer = only_buffer(func, found, "narrow-accumulator")
    alloc = allocation(func, buffer, "narrow-accumulator", found)[-1]
    assert isinstance(alloc, Alloc)
    reduction = reduction_of(func, found, "narrow-accumulator")
    term, start = reduction.term, reduction.start
    zero = isinstance(start, Const) and start.value == 0
    if reduction.op != "add" or not zero or not isinstance(term, Cast):
        message = f'block "{block}" is no sum, from zero, of something that is widened'
        raise refuse(func, "narrow-accumulator.sum", message, found)
    narrow = term.a.dtype
    known = buffers(func)
    known[buffer] = replace(alloc.buffer, dtype=narrow)
    change = _Narrowing(narrow, reduction.target.dtype)
    return AccessRewriter(buffer, known, change.load, change.store).func(func)


class _Narrowing:
    """Rewrites accesses to the accumulator: loads are widened, added terms are not."""

    def __init__(self, narrow: DType, wide: DType) -> None:
        self.narrow = narrow
        self.wide = wide

    def load(self, load: Load, extents: Extents) -> Expr:
        """An element, as wide as it was."""
        return cast(self.wide, replace(load, dtype=self.narrow))

    def store(self, store: Store, extents: Extents) -> Stmt:
        """The start of a sum, or a step of it."""
        return replace(store, value=self._narrowed(store.value))

    def _narrowed(self, value: Expr) -> Expr:
        match value:
            case Const():
                return const(value.value, self.narrow)
            case Cast(_, a) if a.dtype == self.narrow:
                return a
        return binary("add", *map(self._narrowed, (value.a, value.b)))  # type: ignore[attr-defined]
