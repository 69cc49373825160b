"""In which element type sums are formed: 16-bit floats are widened, everything else is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import Expr, cast
from tilewright.core.dtypes import F32, DType
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor


def accumulator(dtype: DType) -> DType:
    """The element type in which a sum of `dtype` elements is formed."""
    return F32 if dtype.is_float and dtype.bits < 32 else dtype


def widen(e: Expr) -> Expr:
    """`e` in the element type that sums of it are formed in."""
    return cast(accumulator(e.dtype), e)


def accumulate(
    b: Builder, shape: Sequence[Expr], dtype: DType, body: Callable[..., Expr]
) -> Tensor:
    """The stage `y` of sums `body` of widened elements, converted back to `dtype` where needed."""
    if accumulator(dtype) == dtype:
        return b.compute("y", shape, body)
    total = b.compute("total", shape, body)
    return b.compute("y", shape, lambda *i: cast(dtype, total.at(*i)))
