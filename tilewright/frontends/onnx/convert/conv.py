"""Convolutions: bias becomes an addition, automatic padding becomes explicit."""

from __future__ import annotations

from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.matmul import reshaped
from tilewright.frontends.onnx.window_attrs import (
    Window,
    auto_pad,
    kernel_shape,
    read_window,
    split_padding,
    steps,
    with_explicit_padding,
)
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.deformable_im2col import DeformableIm2ColAttrs
from tilewright.ops.reduction.channel_norm import per_channel


def _add_bias(c: OnnxContext, n: OnnxNode, y: str, index: int) -> str:
    if not n.has_input(index):
        return y
    bias, rank = n.input(index), c.type(y).rank
    data = c.constant_of(bias)
    if data is not None:
        shaped = c.g.constant(data.reshape(-1, *(1,) * (rank - 2)), bias)
    else:
        shaped = per_channel(c.g, bias, rank)
    return c.add(n, "add", y, shaped)


def convolve(c: OnnxContext, n: OnnxNode, x: str, w: str) -> str:
    """Convolution of two values by the node's attributes."""
    window = read_window(n, c.type(x).shape[2:], kernel_shape(c, n, w))
    x, window = with_explicit_padding(c, n, x, window)
    assert window.static_pads is not None
    attrs = ConvAttrs(
        window.strides,
        window.static_pads,
        window.dilations,
        groups=n.int_attr("group", 1),
    )
    return c.add(n, "conv", x, w, attrs=attrs)


def conv(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Convolution and the addition of its bias."""
    return (_add_bias(c, n, convolve(c, n, n.required(0), n.required(1)), 2),)


def _transposed_window(
    c: OnnxContext, n: OnnxNode, sizes: tuple[Expr, ...], kernel: tuple[Expr, ...]
) -> tuple[Window, tuple[int, ...]]:
    """The window, and the output padding left after the output's shape has been met."""
    rank = len(sizes)
    strides, dilations = steps(n, rank)
    if len(strides) != rank or len(dilations) != rank or len(kernel) != rank:
        raise n.invalid(f"strides, dilations or kernel do not fit {rank} spatial axes")
    output_padding = n.ints_attr("output_padding", (0,) * rank)
    wanted: tuple[Expr, ...] = tuple(const(d) for d in n.ints_attr("output_shape", ()))[-rank:]
    if len(output_padding) != rank or len(wanted) not in (0, rank):
        raise n.invalid(f"output_padding or output_shape do not fit {rank} spatial axes")
    if any((as_int(size) or 0) < 1 for size in wanted):
        raise n.invalid(f"output_shape is {[*map(str, wanted)]}", "use sizes of 1 or more")
    most = [max(s, d) for s, d in zip(strides, dilations, strict=True)]
    if any(not 0 <= p < limit for p, limit in zip(output_padding, most, strict=True)):
        raise n.invalid(
            f"output_padding is {list(output_padding)}",
            f"use numbers below the larger of stride and dilation, {most}",
        )
    kind = auto_pad(n)
    if not wanted and kind not in ("SAME_UPPER", "SAME_LOWER"):
        pads = (0,) * (2 * rank) if kind == "VALID" else n.ints_attr("pads", (0,) * (2 * rank))
        return Window(strides, tuple(const(p) for p in pads), dilations), output_padding
    if not wanted:
        wanted = tuple(size * s for size, s in zip(sizes, strides, strict=True))
    totals, extra = [], []
    for axis in range(rank):
        full = (sizes[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        missing = as_int(simplify(full + output_padding[axis] - wanted[axis]))
        if missing is None:
            raise n.unsupported(
                "automatic padding of a dynamic size", "fix the dimensions, or give explicit pads"
            )
        # An output beyond what the kernel reaches is zeros at its end.
        totals.append(const(max(missing, 0)))
        extra.append(output_padding[axis] + max(-missing, 0))
    # ONNX puts the odd one behind for SAME_UPPER only, here as for an explicit output shape.
    pads_found = split_padding("SAME_UPPER" if kind == "SAME_UPPER" else "SAME_LOWER", totals)
    return Window(strides, pads_found, dilations), tuple(extra)


def conv_transpose(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Transposed convolution and the addition of its bias."""
    x, w = n.required(0), n.required(1)
    kernel = kernel_shape(c, n, w)
    window, output_padding = _transposed_window(c, n, c.type(x).shape[2:], kernel)
    assert window.static_pads is not None
    attrs = ConvTransposeAttrs(
        window.strides,
        window.static_pads,
        window.dilations,
        groups=n.int_attr("group", 1),
        output_padding=output_padding,
    )
    return (_add_bias(c, n, c.add(n, "conv_transpose", x, w, attrs=attrs), 2),)


def deform_conv(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Samples at moved positions, and a matrix product with the weights for each group."""
    x, w, offset = n.required(0), n.required(1), n.required(2)
    kernel = kernel_shape(c, n, w)
    window = read_window(n, c.type(x).shape[2:], kernel)
    sizes, pads = [as_int(k) for k in kernel], window.static_pads
    if None in sizes or pads is None:
        raise n.unsupported("a kernel of dynamic size", "fix the dimensions")
    attrs = DeformableIm2ColAttrs(
        tuple(k for k in sizes if k is not None),
        window.strides,
        pads[: len(kernel)],
        window.dilations,
        n.int_attr("offset_group", 1),
    )
    mask = [n.input(4)] if n.has_input(4) else []
    samples = c.add(n, "deformable_im2col", x, offset, *mask, attrs=attrs)
    groups, outer = n.int_attr("group", 1), c.type(samples).shape
    depth = product(c.type(w).shape[1:])
    out, where = c.type(w).shape[0], outer[2 + len(kernel) :]
    columns = reshaped(c, n, samples, (outer[0], groups, depth, product(where)))
    rows = reshaped(c, n, w, (groups, out // groups, depth))
    y = reshaped(c, n, c.add(n, "matmul", rows, columns), (outer[0], out, *where))
    return (_add_bias(c, n, y, 3),)


CONVERTERS = {"Conv": conv, "ConvTranspose": conv_transpose, "DeformConv": deform_conv}
