"""QuantizeLinear and DequantizeLinear: a quantized value stands for `scale * (value - zero point)`.

Scale and zero point are one for all, one a slice along an axis, or one a block of elements along an
axis. Conversion to the quantized type saturates, unless `saturate=0` lets floats of 8 bits become
infinite or NaN.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, U8, DType
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.cast import convert
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.manipulation import ExpandAttrs


def _named_type(n: OnnxNode, name: str) -> DType | None:
    """The element type that an attribute names; 0 stands for none, as absence does."""
    code = n.int_attr(name, 0)
    return onnx_dtype(code) if code else None


def _along(c: OnnxContext, n: OnnxNode, value: str, like: str) -> str:
    """A scale or zero point in a shape that broadcasts against `like`."""
    own, shape = c.type(value).shape, c.type(like).shape
    if not own or (len(own) == 1 and as_int(own[0]) == 1):
        return add_reshape(c, n, value, ())
    axis = normalize_axis(n.op_type, n.int_attr("axis", 1), len(shape))
    block = n.int_attr("block_size", 0)
    if block:
        return repeated(c, n, value, axis, block, shape[axis])
    if len(own) != 1:
        raise n.invalid(f"a parameter {c.type(value)} is not one number a slice of {c.type(like)}")
    return add_reshape(c, n, value, [own[0] if a == axis else const(1) for a in range(len(shape))])


def repeated(c: OnnxContext, n: OnnxNode, value: str, axis: int, block: int, size: Expr) -> str:
    """Each element along `axis` `block` times; the last block may be cut."""
    own = c.type(value).shape
    if len(own) <= axis:
        raise n.invalid(f"a parameter {c.type(value)} is not one number a block")
    before, after = own[:axis], own[axis + 1 :]
    column = add_reshape(c, n, value, (*before, own[axis], const(1), *after))
    attrs = ExpandAttrs((*before, own[axis], const(block), *after))
    wide = c.add(n, "expand", column, attrs=attrs)
    whole = add_reshape(c, n, wide, (*before, simplify(own[axis] * block), *after))
    return add_slice(c, whole, {axis: (const(0), size, 1)}, n.outputs[0])


def quantize_linear(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`x / scale`, rounded to even where the target is integers, moved by the zero point."""
    x, scale, zero = n.required(0), n.required(1), n.input(2)
    target = c.type(zero).dtype if zero else _named_type(n, "output_dtype") or U8
    scaled = c.type(scale).dtype
    working = _named_type(n, "precision") or (scaled if scaled.is_float else F32)
    divisor = c.cast(n, _along(c, n, scale, x), working)
    y = c.cast(n, c.add(n, "div", c.cast(n, x, working), divisor), F32)
    if target.is_integer:
        y = c.add(n, "round", y)
    if zero and _has_zero_point(target):
        y = c.add(n, "add", y, c.cast(n, _along(c, n, zero, x), F32))
    return (convert(c, n, y, target, saturate=bool(n.int_attr("saturate", 1))),)


def _has_zero_point(dtype: DType) -> bool:
    """Whether a zero point may be other than zero: not with floats of 8 bits."""
    return dtype.is_integer or dtype.bits < 8


def dequantize_linear(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`(x - zero point) * scale`, computed in f32."""
    x, scale = n.required(0), n.required(1)
    y = c.cast(n, x, F32)
    if n.has_input(2) and _has_zero_point(c.type(x).dtype):
        y = c.add(n, "sub", y, c.cast(n, _along(c, n, n.input(2), x), F32))
    y = c.add(n, "mul", y, c.cast(n, _along(c, n, scale, x), F32))
    return (c.cast(n, y, _named_type(n, "output_dtype") or c.type(scale).dtype),)


CONVERTERS: dict[str, Converter] = {
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
}
