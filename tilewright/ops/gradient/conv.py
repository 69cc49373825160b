"""Gradients of convolutions by data and by weights, each a matrix product or a convolution.

    y[n, o, p] = sum over i, k of w[o, i, k] * x[n, i, p * stride + k * dilation - pad]

By weights it is one product, of the gradients and the windows of the data as rows:

    dw[o, (k, i)] = sum over (n, p) of dy[o, (n, p)] * windows[(n, p), (k, i)]

By data it is a convolution of `dy` with the kernel turned round where the stride is 1; else one
product, and the blocks that it gives summed where they lie in the image (`col2im`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.errors import UnsupportedError
from tilewright.ir.types import Shape
from tilewright.ops.accumulation import accumulator
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.im2col import Im2ColAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs, spatial
from tilewright.ops.gradient.formula import (
    Parts,
    Rule,
    matrix_transpose,
    padded,
    part,
    size_of,
    transpose,
    value,
)
from tilewright.ops.op import GraphOps, flat
from tilewright.ops.tensor.manipulation import ReverseAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import Value


def channels_last(x: Value, layout: str) -> Value:
    """Data with the channels as the last dimension."""
    rank = len(x.shape)
    return transpose(x, (0, *range(2, rank), 1)) if layout == "channels_first" else x


def channels_first(x: Value, layout: str) -> Value:
    """Data with the channels before the spatial dimensions."""
    rank = len(x.shape)
    return transpose(x, (0, rank - 1, *range(1, rank - 1))) if layout == "channels_last" else x


def laid_out(x: Value, layout: str) -> Value:
    """Data that have channels first, in a layout."""
    return channels_last(x, "channels_first") if layout == "channels_last" else x


def static_kernel(op: str, shape: Shape) -> tuple[int, ...]:
    """The sizes of kernel axes, which must be numbers."""
    known = [as_int(d) for d in shape]
    if None in known:
        raise UnsupportedError(
            "autodiff.size",
            f"the gradient of {op} with a kernel of [{', '.join(map(str, shape))}]",
            help="give these sizes a value with `dims`",
        )
    return tuple(k for k in known if k is not None)


def data_gradient(attrs: ConvAttrs, w: Value, dy: Value, image: Shape) -> Value:
    """The gradient of data whose spatial sizes are `image`."""
    kernel = static_kernel("conv", w.shape[2:])
    reach = [(k - 1) * d for k, d in zip(kernel, attrs.dilations, strict=True)]
    pads = [r - p for r, p in zip((*reach, *reach), attrs.pads, strict=True)]
    if max(attrs.strides) == 1 and min(pads, default=0) >= 0:
        turned = _exchanged(w, attrs.groups).apply(
            "reverse", attrs=ReverseAttrs(tuple(range(2, len(w.shape))))
        )
        back = ConvAttrs(attrs.strides, tuple(pads), attrs.dilations, attrs.layout, attrs.groups)
        return dy.apply("conv", turned, attrs=back)
    blocks = _blocks(attrs, w, channels_first(dy, attrs.layout))
    sizes = tuple(map(const, kernel))
    at = Col2ImAttrs(image, sizes, attrs.strides, attrs.pads, attrs.dilations)
    return laid_out(blocks.apply("col2im", attrs=at), attrs.layout).cast(dy.dtype)


def _exchanged(w: Value, groups: int) -> Value:
    """Weights [out, in / groups, ...] as [in, out / groups, ...]."""
    out, group_in, *kernel = w.shape
    split = w.reshape((const(groups), simplify(out // groups), group_in, *kernel))
    rank = len(split.shape)
    swapped = transpose(split, (0, 2, 1, *range(3, rank)))
    return swapped.reshape((simplify(group_in * groups), simplify(out // groups), *kernel))


def _blocks(attrs: ConvAttrs, w: Value, dy: Value) -> Value:
    """What each window gets of its result: [batch, in * taps, where]."""
    groups, real = const(attrs.groups), accumulator(dy.dtype)
    group_out = simplify(w.shape[0] // groups)
    taps = size_of(w.shape[1:])
    factor = matrix_transpose(w.cast(real).reshape((groups, group_out, taps)))
    columns = dy.cast(real).reshape((dy.shape[0], groups, group_out, size_of(dy.shape[2:])))
    blocks = factor.apply("matmul", columns)
    return blocks.reshape((dy.shape[0], simplify(groups * taps), columns.shape[-1]))


def weight_gradient(attrs: WindowAttrs, groups: int, x: Value, dy: Value, w: Value) -> Value:
    """The gradient of weights [out, in / groups, kernel...] of the shape of `w`."""
    kernel = static_kernel("conv", w.shape[2:])
    group_in, many = w.shape[1], const(groups)
    group_out = simplify(w.shape[0] // groups)
    rows = size_of((dy.shape[0], *spatial(attrs.layout, dy.shape)))
    out = channels_last(dy, attrs.layout).reshape((rows, many, group_out))
    windows = _windows(
        attrs, channels_last(x, attrs.layout), kernel, spatial(attrs.layout, dy.shape)
    )
    taps = const(prod(kernel))
    windows = windows.reshape((rows, taps, many, group_in))
    columns = transpose(windows, (2, 0, 1, 3)).reshape((many, rows, simplify(taps * group_in)))
    found = transpose(out, (1, 2, 0)).apply("matmul", columns)
    split = found.reshape((many, group_out, taps, group_in))
    return transpose(split, (0, 1, 3, 2)).reshape(w.shape)


def _windows(attrs: WindowAttrs, x: Value, kernel: Sequence[int], counts: Shape) -> Value:
    """The windows of channels-last data: [batch, where..., taps * channels]."""
    channels = as_int(x.shape[-1])
    if prod(kernel) == 1 and max(attrs.strides) == 1 and not any(attrs.pads):
        return x
    if channels is None:
        return _taken_windows(attrs, x, kernel, counts)
    length = prod(kernel) * channels
    at = Im2ColAttrs(
        attrs.strides, attrs.pads, attrs.dilations, "channels_last", tuple(kernel), length
    )
    return x.apply("im2col", attrs=at)


def _taken_windows(attrs: WindowAttrs, x: Value, kernel: Sequence[int], counts: Shape) -> Value:
    """The windows by slices of the padded data, a tap at a time."""
    none = const(0)
    x = padded(x, (none, *map(const, attrs.before), none), (none, *map(const, attrs.after), none))
    taps = [x]
    for axis, (k, s, d) in enumerate(zip(kernel, attrs.strides, attrs.dilations, strict=True), 1):
        taps = [_every(t, axis, n * d, s, counts[axis - 1]) for t in taps for n in range(k)]
    return taps[0].apply("concat", *taps[1:], attrs=ConcatAttrs(len(x.shape) - 1))


def _every(x: Value, axis: int, first: int, step: int, count: Expr) -> Value:
    """So many elements of a dimension, `step` apart."""
    return part(x, axis, first, simplify((count - 1) * step + first + 1), step)


def _conv(attrs: ConvAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    x, w = ins
    dx = data_gradient(attrs, w, dy, spatial(attrs.layout, x.shape))
    return dx, weight_gradient(attrs, attrs.groups, x, dy, w)


def _conv_transpose(
    attrs: ConvTransposeAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value, Value]:
    """The transpose of a convolution: by data it is that convolution, by weights the data and the
    gradients have exchanged their parts."""
    x, w = ins
    plain = ConvAttrs(attrs.strides, attrs.pads, attrs.dilations, attrs.layout, attrs.groups)
    seen = _cropped(attrs, dy)
    dx = seen.apply("conv", w, attrs=plain)
    return dx, weight_gradient(plain, attrs.groups, seen, x, w)


def _cropped(attrs: ConvTransposeAttrs, dy: Value) -> Value:
    """The gradient without what only `output_padding` of a stride or more has added."""
    extra = [-(o // s) * s for o, s in zip(attrs.output_padding, attrs.strides, strict=True)]
    first = attrs.layout == "channels_first"
    behind = (0, 0, *extra) if first else (0, *extra, 0)
    return padded(dy, (const(0),) * len(behind), tuple(map(const, behind)))


def _col2im(attrs: Col2ImAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Each block of the gradient's image."""
    x = ins[0]
    kernel = static_kernel("col2im", attrs.kernel)
    at = WindowAttrs(attrs.strides, attrs.pads, attrs.dilations, "channels_last")
    rank, channels = len(kernel), dy.shape[1]
    counts = tuple(
        simplify((n + b + a - (k - 1) * d - 1) // s + 1)
        for n, b, a, k, d, s in zip(
            dy.shape[2:], at.before, at.after, kernel, attrs.dilations, attrs.strides, strict=True
        )
    )
    found = _windows(at, channels_last(dy, "channels_first"), kernel, counts)
    split = found.reshape((x.shape[0], x.shape[2], const(prod(kernel)), channels))
    assert rank
    return (transpose(split, (0, 3, 2, 1)).reshape(x.shape),)


def _group_conv(g: GraphOps, attrs: WindowAttrs, ins: Sequence[str]) -> str:
    """A convolution whose channels are those of all groups."""
    x, w = (value(g, name) for name in ins)
    groups = as_int(w.shape[0])
    if groups is None:
        raise UnsupportedError(
            "autodiff.size", f"the gradient of group_conv in {w.shape[0]} groups"
        )
    flat_w = w.reshape((size_of(w.shape[:2]), *w.shape[2:]))
    if attrs.layout == "channels_first":
        at = ConvAttrs(attrs.strides, attrs.pads, attrs.dilations, attrs.layout, groups)
        y = x.apply("conv", flat_w, attrs=at)
        return y.reshape((y.shape[0], *w.shape[:2], *y.shape[2:])).name
    pads = (*attrs.before[:-1], *attrs.after[:-1])
    at = ConvAttrs(attrs.strides[:-1], pads, attrs.dilations[:-1], attrs.layout, groups)
    y = x.reshape((*x.shape[:-2], size_of(x.shape[-2:]))).apply("conv", flat_w, attrs=at)
    return y.reshape((*y.shape[:-1], *w.shape[:2])).name


def _im2col(g: GraphOps, attrs: Im2ColAttrs, ins: Sequence[str]) -> str:
    """Slices of the padded image, a tap at a time, and zeros behind."""
    x = value(g, ins[0])
    taken = _taken(attrs, x)
    rank = len(taken.shape)
    behind = simplify(const(attrs.length) - taken.shape[-1])
    none = (const(0),) * rank
    return padded(taken, none, (*none[:-1], behind)).name


def _taken(attrs: Im2ColAttrs, x: Value) -> Value:
    counts = tuple(
        simplify((n + b + a - (k - 1) * d - 1) // s + 1)
        for n, b, a, k, d, s in zip(
            x.shape[1:-1],
            attrs.before,
            attrs.after,
            attrs.kernel,
            attrs.dilations,
            attrs.strides,
            strict=True,
        )
    )
    windows = _taken_windows(attrs, x, attrs.kernel, counts)
    if not attrs.line:
        return windows
    lines = const(prod(attrs.kernel[:-1]))
    own = simplify(windows.shape[-1] // lines)
    split = windows.reshape((*windows.shape[:-1], lines, own))
    none = (const(0),) * len(split.shape)
    wide = padded(split, none, (*none[:-1], simplify(const(attrs.line) - own)))
    return wide.reshape((*windows.shape[:-1], simplify(lines * attrs.line)))


RULES: dict[str, Rule] = {
    "conv": _conv,
    "conv_f16acc": _conv,
    "conv_i32acc": flat,
    "conv_transpose": _conv_transpose,
    "col2im": _col2im,
}
PARTS: dict[str, Parts] = {"group_conv": _group_conv, "im2col": _im2col}
NO_GRADIENT = dict.fromkeys(
    ("winograd_input", "winograd_output"),
    "passes make it of convolutions, of which gradients are taken before",
)
