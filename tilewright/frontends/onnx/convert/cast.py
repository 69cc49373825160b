"""Cast and CastLike, with what ONNX says of floats of 8 bits and fewer.

Our own `cast` gives infinity or NaN for what is beyond a small float, as `saturate=0` asks. What
saturates is brought into range before it is converted. To `float8e8m0`, which is an exponent alone,
the code is computed from the bits of an f32, in the rounding that is asked for.
"""

from __future__ import annotations

from onnx import TensorProto

from tilewright.core.dtypes import BOOL, F8E8M0, F32, I32, STRING, U8, U32, DType
from tilewright.core.float_formats import E8M0_NAN, FORMATS
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.frontends.onnx.segments.data_dependent import HostOnly
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.traced_value import where

# What is added to the bits of an f32 before those of the mantissa are dropped.
_ROUNDINGS = {"up": 0x7FFFFF, "nearest": 0x400000, "down": 0}
_LEAST_POWER = 0x00400000  # 2 to the -127 in f32, the least number of float8e8m0
_INFINITY = 0x7F800000


def convert(
    c: OnnxContext, n: OnnxNode, value: str, dtype: DType, *, saturate: bool, rounding: str = "up"
) -> str:
    """A value in another element type; `rounding` is for float8e8m0 only."""
    if dtype == F8E8M0:
        return _to_power(traced(c, n, value), saturate, rounding).name
    if saturate and dtype in FORMATS and c.type(value).dtype != dtype:
        return _clipped(traced(c, n, value), FORMATS[dtype].limit).cast(dtype).name
    return c.add(n, "cast", value, attrs=CastAttrs(dtype))


def _clipped(x: NodeValue, limit: float) -> NodeValue:
    """A float, not small, within a range; NaN stays."""
    if not x.dtype.is_float or x.dtype.is_small:
        x = x.cast(F32)
    return x.apply("clip", -limit, limit)


def _to_power(x: NodeValue, saturate: bool, rounding: str) -> NodeValue:
    """Powers of two as their exponents; a negative number has none, and becomes NaN."""
    if x.dtype == F8E8M0:
        return x
    if rounding not in _ROUNDINGS:
        raise x.g.n.invalid(f"round_mode is {rounding!r}", f"one of {', '.join(_ROUNDINGS)}")
    bits = x.cast(F32).apply("bitcast", attrs=CastAttrs(U32))
    # Shifts are by constants, and dividing by a power of two is one.
    code = (bits + _ROUNDINGS[rounding]) / (1 << 23)
    tiny = bits.apply("less", _LEAST_POWER) if not saturate else None
    code = where(bits.apply("less_or_equal", _LEAST_POWER), bits.number(0), code)
    if saturate:
        code = code.apply("min", E8M0_NAN - 1)
    code = where(bits.apply("greater", _INFINITY), bits.number(E8M0_NAN), code)
    if tiny is not None:
        code = where(tiny, bits.number(E8M0_NAN), code)
    return code.cast(U8).apply("bitcast", attrs=CastAttrs(F8E8M0))


def cast(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Converted to the element type that is named: before version 6 by its name."""
    if n.opset >= 6:
        return (_cast(c, n, n.dtype_attr("to")),)
    name = n.str_attr("to")
    if name not in TensorProto.DataType.keys():
        raise n.invalid(f"to is {name!r}")
    return (_cast(c, n, onnx_dtype(TensorProto.DataType.Value(name))),)


def cast_like(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Converted to the element type of the second input."""
    return (_cast(c, n, c.type(n.required(1)).dtype),)


def _cast(c: OnnxContext, n: OnnxNode, dtype: DType) -> str:
    value = n.required(0)
    source = c.type(value).dtype
    if STRING in (dtype, source):
        raise HostOnly(n.op_type, n.loc)
    if "complex" in (dtype.kind, source.kind) and dtype not in (source, BOOL):
        raise n.invalid(f"{source} is not converted to {dtype}")
    if dtype.is_integer and dtype.is_small and source.is_float:
        value = c.cast(n, value, I32)  # which wraps; ONNX does not say, its tests do
    saturate, rounding = bool(n.int_attr("saturate", 1)), n.str_attr("round_mode", "up")
    return convert(c, n, value, dtype, saturate=saturate, rounding=rounding)


CONVERTERS: dict[str, Converter] = {"Cast": cast, "CastLike": cast_like}
