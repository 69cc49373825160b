"""Tensors made of sizes and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.arith.expr import Expr, as_expr, as_int, ceildiv, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.tensor.creation import EyeAttrs, FullAttrs, RangeAttrs

# A few numbers of a program can ask for any table; what is made while compiling must fit in memory.
MAX_ELEMENTS = 2**28


def _filled(c: TorchContext, n: AtenCall, shape: Any, value: Any) -> str:
    dims = tuple(as_expr(d) for d in shape)
    if isinstance(value, ValueName | Expr):
        return expanded(c, n, c.operand(n, value, n.dtype), dims)
    return c.add(n, "full", attrs=FullAttrs(dims, n.dtype.numpy.type(value).item(), n.dtype))


def full(c: TorchContext, n: AtenCall) -> Result:
    """One number everywhere."""
    return _filled(c, n, n["size"], n["fill_value"])


def full_like(c: TorchContext, n: AtenCall) -> Result:
    """One number everywhere, in the shape of a tensor."""
    return _filled(c, n, c.type(n["self"]).shape, n.get("fill_value", n.get("value", 0)))


def number(c: TorchContext, n: AtenCall) -> Result:
    """A number as a tensor."""
    return c.operand(n, n["s"], n.dtype)


def empty(c: TorchContext, n: AtenCall) -> Result:
    """Anything will do; zeros are the same every time."""
    return _filled(c, n, n["size"], 0)


def eye(c: TorchContext, n: AtenCall) -> Result:
    """Ones on the diagonal."""
    rows = as_expr(n["n"])
    return c.add(n, "eye_like", attrs=EyeAttrs((rows, as_expr(n.get("m", rows))), 0, n.dtype))


def triangle_indices(
    indices: Callable[[int, int, int], tuple[np.ndarray, np.ndarray]],
) -> Converter:
    """Rows and columns of the elements of a triangle of a matrix."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        rows, columns = (as_int(as_expr(n[name])) for name in ("row", "col"))
        if rows is None or columns is None:
            raise n.unsupported("a triangle of symbolic size", "sizes must be numbers")
        return c.constant(np.stack(indices(rows, n["offset"], columns)), n.dtype, n.name)

    return convert


def arange(c: TorchContext, n: AtenCall) -> Result:
    """Numbers at equal distances: whole ones from sizes, others from constants."""
    start, end, step = n.get("start", 0), n["end"], n.get("step", 1)
    if any(isinstance(v, float) and not v.is_integer() for v in (start, end, step)):
        return _numbers_between(c, n, start, step)
    first, last, by = (_whole(v) for v in (start, end, step))
    stride = as_int(by)
    if stride is None:
        raise n.unsupported("a step that is not a number", "steps must be numbers")
    span = last - first if stride > 0 else first - last
    count = simplify(ceildiv(span, abs(stride)))
    known = as_int(count)
    count = count if known is None else const(max(known, 0))
    dtype = n.dtype if n.dtype.is_integer else I64
    y = c.add(n, "range", attrs=RangeAttrs(first, const(stride), count, dtype))
    return y if dtype == n.dtype else c.add(n, "cast", y, attrs=CastAttrs(n.dtype))


def _numbers_between(c: TorchContext, n: AtenCall, start: float, step: float) -> str:
    """As many as torch says; of integers it has cut off where they start, and their step."""
    (size,) = n.type.shape
    count = as_int(size)
    if count is None or count > MAX_ELEMENTS:
        raise n.unsupported(f"{size} numbers", f"at most {MAX_ELEMENTS}, as many in every run")
    if n.dtype.is_integer:
        start, step = int(start), int(step)
    return c.constant(start + step * np.arange(count), n.dtype, n.name)


def _whole(value: Any) -> Expr:
    return value if isinstance(value, Expr) else const(int(value))


CONVERTERS: dict[str, Converter] = {
    "aten.full": full,
    "aten.full_like": full_like,
    "aten.fill": full_like,
    "aten.scalar_tensor": number,
    "aten.empty": empty,
    "aten.empty_permuted": empty,
    "aten.eye": eye,
    "aten.arange": arange,
    "aten.tril_indices": triangle_indices(np.tril_indices),
    "aten.triu_indices": triangle_indices(np.triu_indices),
    "aten.empty_strided": empty,
    "aten.new_empty_strided": empty,
}
