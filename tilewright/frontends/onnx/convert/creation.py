"""Operators that make tensors of sizes and numbers: Shape, ConstantOfShape, Range, ..."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import Expr, as_int, ceildiv, const, maximum
from tilewright.arith.prove import Prover
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, DType, from_numpy
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.tensor.creation import DimsAttrs, EyeAttrs, FullAttrs, RangeAttrs

# Whole floats beyond this are not counted in 64 bits, in which their differences must fit.
MAX_WHOLE = 2**62


def shape(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The dimensions from `start` to `end` as a tensor."""
    dims = c.type(n.required(0)).shape
    end = n.int_attr("end", len(dims))
    dims = dims[n.int_attr("start", 0) : end]
    return (c.add(n, "dims", attrs=DimsAttrs(dims, (len(dims),))),)


def size(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The number of elements."""
    elements = simplify(c.type(n.required(0)).elements)
    return (c.add(n, "dims", attrs=DimsAttrs((elements,), ())),)


def constant_of_shape(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """One value everywhere, by default 0.0."""
    value = n.tensor_attr("value") if n.has_attr("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise n.invalid(f"its value has {value.size} elements, not one")
    attrs = FullAttrs(c.known_ints(n, 0), value.reshape(()).item(), from_numpy(value.dtype))
    return (c.add(n, "full", attrs=attrs),)


def range_(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Numbers at equal distances: of integers that are known, or of constants."""
    dtype = c.type(n.required(0)).dtype
    if any(as_int(c.type(n.required(i)).elements) == 0 for i in range(3)):
        raise n.invalid("start, limit or delta has no elements")
    types = [c.type(n.required(i)) for i in range(3)]
    if any(t.dtype != dtype for t in types):
        raise n.invalid(f"start, limit and delta are {', '.join(map(str, types))}")
    if not dtype.is_float:
        return (_integers(c, n, [n.only(c.known_ints(n, i), i) for i in range(3)], dtype),)
    whole = [_whole_number(c, n.required(i)) for i in range(3)]
    if all(e is not None for e in whole):
        integers = _integers(c, n, [e for e in whole if e is not None], I64)
        return (c.add(n, "cast", integers, attrs=CastAttrs(dtype)),)
    start, limit, delta = (float(c.scalar(n, i)) for i in range(3))
    if not np.isfinite((limit - start) / delta if delta else np.nan):
        raise n.invalid(f"from {start} to {limit} in steps of {delta}")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    n.check_table(count)
    values = (start + np.arange(count) * delta).astype(dtype.numpy)
    return (c.g.constant(values, identifier(n.outputs[0])),)


def _integers(c: OnnxContext, n: OnnxNode, bounds: Sequence[Expr], dtype: DType) -> str:
    first, last, step = bounds[0], bounds[1], as_int(bounds[2])
    if step is None:
        raise c.needs_value(n, 2)
    if step == 0:
        raise n.invalid("delta is 0")
    attrs = RangeAttrs(first, const(step), _count(first, last, step), dtype)
    return c.add(n, "range", attrs=attrs)


def _whole_number(c: OnnxContext, name: str) -> Expr | None:
    """A float scalar as an index expression: an integral constant, or integers converted."""
    data = c.constant_of(name)
    if data is not None:
        value = float(data.reshape(-1)[0])
        return const(int(value)) if value.is_integer() and abs(value) < MAX_WHOLE else None
    for node in reversed(c.g.nodes):
        if name in node.outputs:
            known = c.g.symbolic_value(node.inputs[0]) if node.op == "cast" else None
            return None if known is None else known.reshape(-1)[0]
    return None


def _count(first: Expr, last: Expr, step: int) -> Expr:
    span = last - first if step > 0 else first - last
    count = simplify(ceildiv(span, abs(step)))
    # A range that begins beyond its limit is empty.
    return count if Prover({}).nonneg(to_affine(count)) else simplify(maximum(count, const(0)))


def eye_like(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Ones on a diagonal of a matrix of the input's shape."""
    like = c.type(n.required(0))
    attrs = EyeAttrs(like.shape, n.int_attr("k", 0), n.dtype_attr("dtype", like.dtype))
    return (c.add(n, "eye_like", attrs=attrs),)


CONVERTERS: dict[str, Converter] = {
    "Shape": shape,
    "Size": size,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "EyeLike": eye_like,
}
