"""Pooling and its inverse; global pools are reductions over the spatial axes."""

from __future__ import annotations

from typing import Any

from tilewright.arith.expr import const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import U64
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.matmul import reshaped
from tilewright.frontends.onnx.window_attrs import auto_pad, read_window
from tilewright.ops.conv.pool import AveragePoolAttrs, LpPoolAttrs, PoolAttrs, PoolIndicesAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs


def _window(c: OnnxContext, n: OnnxNode) -> dict[str, Any]:
    """The attributes that all pools have."""
    kernel = n.ints_attr("kernel_shape")
    if min(kernel, default=1) < 1:
        raise n.invalid(f"kernel_shape is {list(kernel)}", "use windows of one element or more")
    sizes = c.type(n.required(0)).shape[2:]
    window = read_window(n, sizes, tuple(const(k) for k in kernel))
    if window.static_pads is None:
        raise n.unsupported(
            "automatic padding of a dynamic size", "fix the dimensions, or give explicit pads"
        )
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, window.dilations, strict=True)]
    if any(pad >= r for pad, r in zip(window.static_pads, reach * 2, strict=True)):
        raise n.invalid(
            f"padding by {list(window.static_pads)} has windows of {reach} meet no element",
            "pad by less than a window",
        )
    # Automatic padding fixes the number of windows whichever way it is rounded.
    ceil = bool(n.int_attr("ceil_mode", 0)) and auto_pad(n) == "NOTSET"
    return {
        "strides": window.strides,
        "pads": window.static_pads,
        "dilations": window.dilations,
        "kernel": kernel,
        "ceil": ceil,
    }


def max_pool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Maxima, and where they were found if that is wanted."""
    window = _window(c, n)
    y = c.add(n, "max_pool", n.input(0), attrs=PoolAttrs(**window))
    if not n.wants(1):
        return (y,)
    attrs = PoolIndicesAttrs(**window, column_major=bool(n.int_attr("storage_order", 0)))
    return y, c.add(n, "max_pool_indices", n.input(0), attrs=attrs)


def average_pool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Means, with or without the padding counted."""
    attrs = AveragePoolAttrs(**_window(c, n), count_pads=bool(n.int_attr("count_include_pad", 0)))
    return (c.add(n, "average_pool", n.input(0), attrs=attrs),)


def lp_pool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """p-norms."""
    return (c.add(n, "lp_pool", n.input(0), attrs=LpPoolAttrs(**_window(c, n), p=_order(n))),)


def _order(n: OnnxNode) -> int:
    """The order of a norm, a float in version 1."""
    order = n.float_attr("p", 2.0) if n.opset < 2 else n.int_attr("p", 2)
    if order < 1 or order != int(order):
        raise n.invalid(f"p is {order}", "use a whole number of 1 or more")
    return int(order)


def _spatial(c: OnnxContext, n: OnnxNode) -> ReduceAttrs:
    return ReduceAttrs(tuple(range(2, c.type(n.required(0)).rank)), keepdims=True)


def global_pool(op: str) -> Converter:
    """A reduction over all spatial axes."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        return (c.add(n, op, n.required(0), attrs=_spatial(c, n)),)

    return convert


def global_lp_pool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The p-norm over all spatial axes; other orders than 1 and 2 go through powers."""
    x, order, attrs = n.required(0), _order(n), _spatial(c, n)
    if order <= 2:
        return (c.add(n, f"reduce_l{order}", x, attrs=attrs),)
    dtype = c.type(x).dtype
    powers = c.add(n, "pow", c.add(n, "abs", x), c.constant(order, dtype))
    total = c.add(n, "reduce_sum", powers, attrs=attrs)
    return (c.add(n, "pow", total, c.constant(1 / order, dtype)),)


def max_unpool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Elements put back where they were found, among zeros; the rest of a larger output is zero."""
    x, indices = n.required(0), n.required(1)
    shape, dtype = c.type(x).shape, c.type(x).dtype
    kernel = n.ints_attr("kernel_shape")
    rank = len(kernel)
    strides, pads = n.ints_attr("strides", (1,) * rank), n.ints_attr("pads", (0,) * (2 * rank))
    if len(shape) != rank + 2 or len(strides) != rank or len(pads) != 2 * rank:
        raise n.invalid(f"strides, pads or kernel do not fit {c.type(x)}")
    own = list(shape[:2])
    for axis, size in enumerate(shape[2:]):
        reach = kernel[axis] - strides[axis] - pads[axis] - pads[rank + axis]
        own.append(simplify(size * strides[axis] + reach))
    count = simplify(product(tuple(own)))
    zeros = c.add(n, "full", attrs=FullAttrs((count,), 0, dtype))
    # Unsigned, as no index counts from the end.
    places = c.cast(n, indices, U64)
    flat = [reshaped(c, n, v, (c.type(x).elements,)) for v in (places, x)]
    y = c.add(n, "scatter_elements", zeros, *flat, attrs=ScatterElementsAttrs(0))
    y = reshaped(c, n, y, own)
    if not n.has_input(2):
        return (y,)
    wanted = c.known_ints(n, 2)
    if len(wanted) != len(own):
        raise n.invalid(f"an output shape of {len(wanted)} sizes for {c.type(x)}")
    more = [simplify(d - o) for d, o in zip(wanted, own, strict=True)]
    if all(m is const(0) for m in more):
        return (y,)
    attrs = PadAttrs((const(0),) * len(own), tuple(more))
    return (c.add(n, "pad", y, attrs=attrs),)


CONVERTERS: dict[str, Converter] = {
    "MaxPool": max_pool,
    "MaxUnpool": max_unpool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalAveragePool": global_pool("reduce_mean"),
    "GlobalMaxPool": global_pool("reduce_max"),
    "GlobalLpPool": global_lp_pool,
}
