"""Complex tensors as pairs of real ones: our graph has no arithmetic of complex numbers.

In memory a complex tensor is a real one with a last dimension of two, as `torch.view_as_real` has
it; that is what graphs take and give.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import const
from tilewright.core.dtypes import C64, C128, F32, F64, DType
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs

_REAL = {C64: F32, C128: F64}


@dataclass(frozen=True)
class ComplexValue:
    """The names of the real and of the imaginary part, which have one type."""

    re: str
    im: str


def real_dtype(dtype: DType) -> DType:
    """The type of the parts of a complex type; another type is itself."""
    return _REAL.get(dtype, dtype)


def real_type(t: TensorType) -> TensorType:
    """A tensor of the parts of a complex tensor."""
    return TensorType(real_dtype(t.dtype), t.shape)


def interleaved_type(t: TensorType) -> TensorType:
    """A complex tensor as it lies in memory."""
    return TensorType(real_dtype(t.dtype), (*t.shape, const(2)))


def parts(g: GraphBuilder, pairs: str) -> ComplexValue:
    """Real and imaginary parts of a tensor whose last dimension holds both."""
    return ComplexValue(part(g, pairs, 0), part(g, pairs, 1))


def part(g: GraphBuilder, pairs: str, index: int) -> str:
    """One element of the last dimension, which goes."""
    shape = g.type(pairs).shape
    starts = (*(const(0) for _ in shape[:-1]), const(index))
    stops = (*shape[:-1], const(index + 1))
    attrs = SliceAttrs(starts, stops, (1,) * len(shape), inside=True)
    return g.add("reshape", g.add("slice", pairs, attrs=attrs), attrs=ReshapeAttrs(shape[:-1]))


def interleaved(g: GraphBuilder, value: ComplexValue) -> str:
    """Both parts side by side in a last dimension."""
    shape = (*g.type(value.re).shape, const(1))
    both = (g.reshape(x, shape) for x in (value.re, value.im))
    return g.add("concat", *both, attrs=ConcatAttrs(len(shape) - 1))
