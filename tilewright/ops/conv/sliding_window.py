"""Sliding windows, shared by convolution and pooling: their positions, and the padded input.

Along one axis, tap `k` of window `p` reads position `p * stride + k * dilation - pad` of the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import TRUE, Const, Expr, as_int, const, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.op import fail
from tilewright.ops.shape.assumptions import assume

LAYOUTS = ("channels_first", "channels_last")


@node
class WindowAttrs(Attrs):
    """Where windows lie; `pads` lists the padding before each axis, then after each."""

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    layout: str = "channels_first"

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.strides)

    @property
    def before(self) -> tuple[int, ...]:
        """The padding before each axis."""
        return self.pads[: self.rank]

    @property
    def after(self) -> tuple[int, ...]:
        """The padding after each axis."""
        return self.pads[self.rank :]


def check_window(op: str, attrs: WindowAttrs, x: TensorType, kernel_rank: int) -> None:
    """Raise TypeCheckError unless the attributes fit each other and the input."""
    if attrs.layout not in LAYOUTS:
        raise fail(op, f"layout {attrs.layout!r} is not one of {', '.join(LAYOUTS)}")
    if x.rank < 3 or x.rank - 2 != attrs.rank or kernel_rank != attrs.rank:
        raise fail(
            op, f"input {x}, strides {attrs.strides} and a kernel of rank {kernel_rank} do not fit"
        )
    check_steps(op, attrs)


def check_steps(op: str, attrs: WindowAttrs) -> None:
    """Raise TypeCheckError unless the attributes fit each other."""
    if len(attrs.pads) != 2 * attrs.rank or len(attrs.dilations) != attrs.rank:
        raise fail(op, f"pads {attrs.pads} or dilations {attrs.dilations} have the wrong length")
    if min(attrs.strides) < 1 or min(attrs.dilations) < 1 or min(attrs.pads) < 0:
        raise fail(op, "strides and dilations must be at least 1, pads at least 0")


def channels(layout: str, shape: Shape) -> Expr:
    """The number of channels."""
    return shape[1] if layout == "channels_first" else shape[-1]


def spatial(layout: str, shape: Shape) -> Shape:
    """The sizes of the spatial axes."""
    return shape[2:] if layout == "channels_first" else shape[1:-1]


def arrange(layout: str, batch: Expr, channel: Expr, where: Sequence[Expr]) -> tuple[Expr, ...]:
    """An index (or a shape) from its parts, in the order that `layout` gives."""
    if layout == "channels_first":
        return (batch, channel, *where)
    return (batch, *where, channel)


def parts(layout: str, index: Sequence[Expr]) -> tuple[Expr, Expr, tuple[Expr, ...]]:
    """The batch, channel and spatial parts of an index: what `arrange` put together."""
    if layout == "channels_first":
        return index[0], index[1], tuple(index[2:])
    return index[0], index[-1], tuple(index[1:-1])


def window_count(
    op: str, size: Expr, kernel: Expr, attrs: WindowAttrs, axis: int, ceil: bool = False
) -> Expr:
    """How many windows lie along `axis` of an input of `size`.

    With `ceil`, the last window may reach beyond the padding, but must start inside the input or
    the padding before it.
    """
    stride, dilation = attrs.strides[axis], attrs.dilations[axis]
    padding = attrs.before[axis] + attrs.after[axis]
    # One constant, so that equal sizes reached on different ways are the same expression.
    spare = simplify(const(padding - 1) - (kernel - 1) * dilation)
    room = size + spare
    count = room // stride + 1
    if ceil:
        last = (size + (attrs.before[axis] - 1)) // stride
        count = minimum((room + (stride - 1)) // stride, last) + 1
    count, least = simplify(count), as_int(spare)
    if least is not None and least >= -stride:  # enough even for an input without elements
        return count
    message = f"a kernel of {kernel} is larger than the padded input of {size}"
    if not assume(simplify(const(0) <= count), f"{op}: {message}"):
        raise fail(op, message)
    return count


def tap(attrs: WindowAttrs, window: Sequence[Expr], taps: Sequence[Expr]) -> list[Expr]:
    """The position in the padded input that tap `taps` of window `window` reads."""
    steps = zip(window, taps, attrs.strides, attrs.dilations, strict=True)
    return [p * s + k * d for p, k, s, d in steps]


def padded(b: Builder, attrs: WindowAttrs, x: Tensor, after: Sequence[Expr], fill: Const) -> Tensor:
    """`x` as a stage with its spatial axes padded with `fill`; `x` itself where nothing is to pad.

    `after` is the padding behind each axis, which rounding up may enlarge beyond the attributes'.
    """
    sizes = spatial(attrs.layout, x.shape)
    if not any(attrs.before) and all(a is const(0) for a in after):
        return x
    batch, channel, _ = parts(attrs.layout, x.shape)
    grown = [simplify(n + p + a) for n, p, a in zip(sizes, attrs.before, after, strict=True)]

    def element(*i: Expr) -> Expr:
        n, c, where = parts(attrs.layout, i)
        inside: Expr = TRUE
        source: list[Expr] = []
        for position, size, front, back in zip(where, sizes, attrs.before, after, strict=True):
            source.append(position - front)
            if front:
                inside = inside & (position >= front)
            if back is not const(0):
                inside = inside & (position < size + front)
        value = x.at(*arrange(attrs.layout, n, c, source), when=inside)
        return value if fill.value == 0 else select(inside, value, fill)

    return b.compute("padded", arrange(attrs.layout, batch, channel, grown), element)
