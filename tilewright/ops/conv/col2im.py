"""col2im: sliding blocks summed into an image, the inverse of im2col.

y[n, c, p] = sum over taps k of x[n, (c, k), b]  where  p = b * stride + k * dilation - pad
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import TRUE, Expr, as_int, cast, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulate, accumulator
from tilewright.ops.conv.sliding_window import WindowAttrs, check_steps, window_count
from tilewright.ops.elementwise.define import check_dtype, numbers
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import same_size
from tilewright.ops.tensor.manipulation import flatten


@node
class Col2ImAttrs(Attrs):
    """The size of the image, the size of a block, and where blocks lie in the padded image."""

    image: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def _window(attrs: Col2ImAttrs) -> WindowAttrs:
    return WindowAttrs(attrs.strides, attrs.pads, attrs.dilations)


def _counts(attrs: Col2ImAttrs) -> tuple[Expr, ...]:
    window = _window(attrs)
    return tuple(
        window_count("col2im", size, attrs.kernel[axis], window, axis)
        for axis, size in enumerate(attrs.image)
    )


def _type(attrs: Col2ImAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, rank = ins[0], len(attrs.kernel)
    check_dtype("col2im", numbers, x.dtype)
    if not len(attrs.image) == len(attrs.strides) == rank > 0:
        raise fail("col2im", f"{attrs} does not give every axis its numbers")
    check_steps("col2im", _window(attrs))
    if x.rank != 3 or any((as_int(k - 1) or 0) < 0 for k in attrs.kernel):
        raise fail("col2im", f"{x} with blocks {attrs.kernel}", "give [N, C * block, L]")
    taps, blocks = product(attrs.kernel), simplify(product(_counts(attrs)))
    channels = simplify(x.shape[1] // taps)
    if same_size("col2im", x.shape[1], channels * taps) is None:
        raise fail("col2im", f"{x.shape[1]} channels are not blocks of {taps}")
    if same_size("col2im", x.shape[2], blocks) is None:
        raise fail("col2im", f"{x} has not the {blocks} blocks of the image")
    return TensorType(x.dtype, (x.shape[0], channels, *map(simplify, attrs.image)))


def _col2im(
    b: Builder, attrs: Col2ImAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, counts, real = ins[0], _counts(attrs), accumulator(ins[0].dtype)

    def element(n: Expr, c: Expr, *place: Expr) -> Expr:
        def term(*taps: Expr) -> Expr:
            inside: Expr = TRUE
            blocks: list[Expr] = []
            for axis, (p, k) in enumerate(zip(place, taps, strict=True)):
                start = p + attrs.pads[axis] - k * attrs.dilations[axis]
                block = start // attrs.strides[axis]
                inside = inside & (start >= 0) & (block < counts[axis])
                if attrs.strides[axis] > 1:
                    inside = inside & (start % attrs.strides[axis]).eq(0)
                blocks.append(block)
            row = flatten((x.shape[1], *attrs.kernel), (c, *taps))
            return cast(real, x.at(n, row, flatten(counts, blocks), when=inside))

        return b.sum(attrs.kernel, term)

    return accumulate(b, outs[0].shape, x.dtype, element)


OPS = (
    Op(
        "col2im",
        _type,
        "out_fusable",
        Col2ImAttrs,
        te=_col2im,
        flops=lambda a, ins, outs: outs[0].elements * product(a.kernel),
        doc="Blocks [N, C * block, number of blocks] summed where they lie in an image.",
    ),
)
