"""im2col: the windows of an image as rows of a matrix, which a GEMM multiplies with the filters.

conv(x, w)   →   matmul_f32out(im2col(x), w')
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.arith.expr import TRUE, Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.conv.sliding_window import WindowAttrs, check_window, spatial, tap, window_count
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.manipulation import unflatten


@node
class Im2ColAttrs(WindowAttrs):
    """Where windows lie, the size of one, and the length that each is filled up to with zeros.

    With `line`, each line of a window, its taps along the last axis, is filled up to that length.
    """

    kernel: tuple[int, ...] = ()
    length: int = 0
    line: int = 0


def _windows_type(attrs: Im2ColAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    check_window("im2col", attrs, x, len(attrs.kernel))
    line = as_int(x.shape[-1] * attrs.kernel[-1])
    if attrs.layout != "channels_last" or line is None or line > (attrs.line or line):
        raise fail("im2col", f"a line of a window of {x} has not {attrs.line} elements")
    taken = prod(attrs.kernel[:-1]) * (attrs.line or line)
    if taken > attrs.length:
        raise fail("im2col", f"{taken} elements of a window of {x} are not {attrs.length}")
    sizes = [
        window_count("im2col", n, const(attrs.kernel[axis]), attrs, axis)
        for axis, n in enumerate(spatial(attrs.layout, x.shape))
    ]
    return TensorType(x.dtype, (x.shape[0], *sizes, const(attrs.length)))


def _windows(
    b: Builder, attrs: Im2ColAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    sizes, channels = spatial(attrs.layout, x.shape), x.shape[-1]
    *lines, across = map(const, attrs.kernel)
    line = simplify(across * channels)
    filled = const(attrs.line) if attrs.line else line
    taken = simplify(product((*lines, filled)))
    whole = as_int(taken) == attrs.length

    def element(n: Expr, *rest: Expr) -> Expr:
        *window, place = rest
        *taps, along = unflatten((*lines, filled), place)
        inside: Expr = TRUE if whole else place < taken
        if filled is not line:
            inside = inside & (along < line)
        # Of one tap, what is past its channels is left out: no other pixel is meant.
        single = attrs.kernel[-1] == 1
        last, channel = (const(0), along) if single else unflatten((across, channels), along)
        taps.append(last)
        where: list[Expr] = []
        for axis, position in enumerate(tap(attrs, window, taps)):
            where.append(position - attrs.before[axis])
            if attrs.before[axis]:
                inside = inside & (position >= attrs.before[axis])
            if attrs.after[axis]:
                inside = inside & (position < sizes[axis] + attrs.before[axis])
        return x.at(n, *where, channel, when=inside)

    return b.compute("y", outs[0].shape, element)


OPS = (
    Op(
        "im2col",
        _windows_type,
        "injective",
        Im2ColAttrs,
        te=_windows,
        flops=0,
        doc="Every window of a channels-last image as one row, filled up with zeros.",
    ),
)
