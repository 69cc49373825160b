"""Accumulator types: sums of 16-bit floats are formed in f32, all others in their own type.

A formula may widen the factors of each product, or the product: `f32(x) * f32(w)`, `f32(x * w)`.
The second allows f16 accumulation: a kernel may sum chunks of up to `F16_CHUNK` products in f16,
and chunks of up to `F16_MAX_TERMS` products in all, before it adds them to an f32 accumulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.arith.expr import Expr, cast
from tilewright.core.dtypes import F32, I32, DType
from tilewright.core.node import node
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor

F16_CHUNK = 128
"""Products that may be added up one after another in their own type."""
F16_MAX_TERMS = 256
"""Products of which such sums may be added up in that type."""
MIN_CHUNK = 16
"""Shorter sums would spend more on being widened than on being formed."""
WHOLE_VECTORS = 8
"""Parts of so many terms are preferred: their factors may be loaded as vectors."""


@node
class AccumulationChunk:
    """Terms summed at a time: all `inner` loops of a reduction, and `part` steps of the next."""

    inner: int
    part: int


def accumulation_chunk(extents: Sequence[int]) -> AccumulationChunk | None:
    """How the sum over loops of these extents (0: not known) is cut; `None` if it cannot be.

    One that need not be cut has all its loops inside.
    """
    count = len(extents)
    if 0 in extents or not extents:
        return None
    if prod(extents) <= F16_CHUNK:
        return AccumulationChunk(count, 1)
    inner = 0
    while prod(extents[count - inner - 1 :]) <= F16_CHUNK:
        inner += 1
    terms, around = prod(extents[count - inner :]), extents[count - inner - 1]
    parts = [n for n in range(1, F16_CHUNK // terms + 1) if around % n == 0]
    whole = [n for n in parts if n * terms % WHOLE_VECTORS == 0]
    part = max(whole, default=0)
    part = part if part * terms >= 2 * MIN_CHUNK else max(parts)
    return AccumulationChunk(inner, part) if part * terms >= MIN_CHUNK else None


def accumulator(dtype: DType) -> DType:
    """The element type in which a sum of `dtype` elements is formed."""
    return F32 if dtype.is_float and dtype.bits < 32 else dtype


def widen(e: Expr) -> Expr:
    """`e` in the element type that sums of it are formed in."""
    return cast(accumulator(e.dtype), e)


def widening_product(x: Expr, w: Expr) -> Expr:
    """A product of widened factors."""
    return widen(x) * widen(w)


def narrow_product(x: Expr, w: Expr) -> Expr:
    """A product in the type of its factors, of which a few may be summed before being widened."""
    return widen(x * w)


def integer_product(x: Expr, w: Expr) -> Expr:
    """A product of 8-bit integers, in i32."""
    return cast(I32, x) * cast(I32, w)


def accumulate(
    b: Builder, shape: Sequence[Expr], dtype: DType, body: Callable[..., Expr]
) -> Tensor:
    """The stage `y` of sums `body` of widened elements, converted back to `dtype` where needed."""
    if accumulator(dtype) == dtype:
        return b.compute("y", shape, body)
    total = b.compute("total", shape, body)
    return b.compute("y", shape, lambda *i: cast(dtype, total.at(*i)))
