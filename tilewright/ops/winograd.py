"""Winograd's minimal filtering F(2x2, 3x3): a 3 by 3 convolution with fewer multiplications.

Every 2 by 2 tile of the output comes from a 4 by 4 tile of the input: both tile and filter are
transformed, multiplied element by element (summed over channels, which is 16 matrix products), and
transformed back. 16 multiplications a tile and channel stand in place of 36.

    conv(x, w)  =  winograd_output(matmul(winograd_input(x), transformed w))

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.expr import Expr, const, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.row import Op, fail

TILE, WINDOW = 2, 4
# Filters are transformed in f64, so many at a time that memory is no matter.
FILTERS_AT_ONCE = 16
# The filter's transform; the other two are written out below.
_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


@node
class WinogradAttrs(Attrs):
    """How many tiles the output has in each direction, and the padding before the input."""

    tiles: tuple[int, int]
    before: tuple[int, int]


def transform_filter(weights: np.ndarray) -> np.ndarray:
    """Filters `[O, C, 3, 3]` as the 16 matrices `[16, C, O]` that tiles are multiplied by."""
    filters, channels = weights.shape[:2]
    result = np.empty((16, channels, filters), weights.dtype)
    for start in range(0, filters, FILTERS_AT_ONCE):
        some = weights[start : start + FILTERS_AT_ONCE].astype(np.float64)
        exact = np.einsum("ai,bj,ocij->abco", _G, _G, some)
        result[:, :, start : start + FILTERS_AT_ONCE] = exact.reshape(16, channels, len(some))
    return result


def _input_type(attrs: WinogradAttrs, ins: Sequence[TensorType]) -> TensorType:
    if ins[0].rank != 4:
        raise fail("winograd_input", f"{ins[0]} is no batch of images")
    n, _, _, channels = ins[0].shape
    tiles = (const(t) for t in attrs.tiles)
    return TensorType(ins[0].dtype, (const(WINDOW), const(WINDOW), n, *tiles, channels))


def _input(
    b: Builder, attrs: WinogradAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    _, height, width, _ = x.shape

    def element(*i: Expr) -> Expr:
        row, column, n, ty, tx, c = i

        def pixel(dy: int, dx: int) -> Expr:
            y = ty * TILE + (dy - attrs.before[0])
            z = tx * TILE + (dx - attrs.before[1])
            inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
            return x.at(n, y, z, c, when=inside)

        columns = [_window(row, [pixel(dy, dx) for dy in range(WINDOW)]) for dx in range(WINDOW)]
        return _window(column, columns)

    return b.compute("y", outs[0].shape, element)


def _window(which: Expr, v: Sequence[Expr]) -> Expr:
    """One row of the input's transform."""
    last = select(which.eq(2), v[2] - v[1], v[1] - v[3])
    return select(which.eq(0), v[0] - v[2], select(which.eq(1), v[1] + v[2], last))


def _output_type(attrs: WinogradAttrs, ins: Sequence[TensorType]) -> TensorType:
    _, _, n, ty, tx, channels = ins[0].shape
    return TensorType(ins[0].dtype, (n, ty, const(TILE), tx, const(TILE), channels))


def _output(
    b: Builder, _: WinogradAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    m = ins[0]

    def element(*i: Expr) -> Expr:
        n, ty, row, tx, column, c = i
        columns = [
            _tile(row, [m.at(a, k, n, ty, tx, c) for a in range(WINDOW)]) for k in range(WINDOW)
        ]
        return _tile(column, columns)

    return b.compute("y", outs[0].shape, element)


def _tile(which: Expr, v: Sequence[Expr]) -> Expr:
    """One row of the output's transform."""
    return select(which.eq(0), v[0] + v[1] + v[2], v[1] - v[2] - v[3])


OPS = (
    Op(
        "winograd_input",
        _input_type,
        "injective",
        WinogradAttrs,
        te=_input,
        flops=2,
        doc="Overlapping 4x4 tiles of images, transformed for Winograd's convolution.",
    ),
    Op(
        "winograd_output",
        _output_type,
        "injective",
        WinogradAttrs,
        te=_output,
        flops=6,
        doc="2x2 tiles of a convolution's output from Winograd's products.",
    ),
)
