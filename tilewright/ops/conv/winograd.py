"""Winograd's minimal filtering: a convolution with fewer multiplications, in one or two dimensions.

Every tile of the output comes from an overlapping tile of the input: input tiles and filters are
transformed along each axis (`toom_cook`), multiplied element by element, which summed over channels
is one matrix product a point, and transformed back.

    conv(x, w)  =  winograd_output(matmul(winograd_input(x), transformed w))

Images are channels-last. A transform along one axis is a stage of its own: both together, element
by element, would repeat the first for every element of the second.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from tilewright.arith.expr import TRUE, Expr, ceildiv, const, product, select
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.conv.toom_cook import Matrix, additions, combine, transforms
from tilewright.ops.op import Op, fail

# Filters are transformed in f64, so many at a time that memory is no matter.
FILTERS_AT_ONCE, CHANNELS_AT_ONCE = 64, 64


@node
class WinogradAttrs(Attrs):
    """For each axis: the output's tile, the taps of the filter, the padding before, the size."""

    tile: tuple[int, ...]
    window: tuple[int, ...]
    before: tuple[int, ...]
    size: tuple[Expr, ...]

    @property
    def points(self) -> tuple[int, ...]:
        """The points of the transforms, which is also the size of an input tile."""
        return tuple(m + r - 1 for m, r in zip(self.tile, self.window, strict=True))

    @property
    def tiles(self) -> Shape:
        """How many tiles cover the output."""
        return tuple(simplify(ceildiv(n, m)) for n, m in zip(self.size, self.tile, strict=True))


def transform_filter(weights: np.ndarray, tile: Sequence[int]) -> np.ndarray:
    """Filters `[O, C, *window]` as the matrices `[points, C, O]` that tiles are multiplied by."""
    filters, channels, *window = weights.shape
    whole: np.ndarray = np.ones((1, 1))
    for m, r in zip(tile, window, strict=True):
        whole = np.kron(whole, np.array(transforms(m, r).filters, np.float64))
    result = np.empty((len(whole), channels, filters), weights.dtype)
    for start in range(0, filters, FILTERS_AT_ONCE):
        some = weights[start : start + FILTERS_AT_ONCE].reshape(-1, channels, prod(window))
        for c in range(0, channels, CHANNELS_AT_ONCE):
            part = some[:, c : c + CHANNELS_AT_ONCE].transpose(2, 1, 0).astype(np.float64)
            exact = whole @ part.reshape(prod(window), -1)
            place = result[:, c : c + CHANNELS_AT_ONCE, start : start + FILTERS_AT_ONCE]
            place[...] = exact.reshape(place.shape)
    return result


def _chosen(which: Expr, values: Sequence[Expr]) -> Expr:
    """The value numbered `which`."""
    found = values[-1]
    for number in reversed(range(len(values) - 1)):
        found = select(which.eq(number), values[number], found)
    return found


def _input_type(attrs: WinogradAttrs, ins: Sequence[TensorType]) -> TensorType:
    if ins[0].rank != len(attrs.tile) + 2:
        raise fail("winograd_input", f"{ins[0]} is no batch of images of rank {len(attrs.tile)}")
    n, channels = ins[0].shape[0], ins[0].shape[-1]
    points = map(const, attrs.points)
    return TensorType(ins[0].dtype, (*points, n, *attrs.tiles, channels))


def _input(
    b: Builder, attrs: WinogradAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    """Axis after axis. What is read of memory goes through a stage before it is stored again."""
    rank, shape = len(attrs.tile), outs[0].shape

    def pixel(*i: Expr) -> Expr:
        (*places, n), tiles, c = i[: rank + 1], i[rank + 1 : -1], i[-1]
        steps = zip(tiles, attrs.tile, places, attrs.before, strict=True)
        at = [t * m + d - p for t, m, d, p in steps]
        inside: Expr = TRUE
        for position, size in zip(at, ins[0].shape[1:-1], strict=True):
            inside = inside & (position >= 0) & (position < size)
        return ins[0].at(n, *at, c, when=inside)

    read = b.compute("tile", shape, pixel).at if rank == 1 else pixel
    for axis in range(rank):
        matrix = transforms(attrs.tile[axis], attrs.window[axis]).inputs
        name = "y" if axis == rank - 1 else "axis"
        read = b.compute(name, shape, partial(_transformed, matrix, axis, read)).at
    return Tensor(b.stages[-1].name, outs[0].dtype, shape)


def _transformed(matrix: Matrix, axis: int, read: Callable[..., Expr], *i: Expr) -> Expr:
    """One element of a transform along `axis`, of what `read` gives."""
    values = [read(*i[:axis], const(k), *i[axis + 1 :]) for k in range(len(matrix[0]))]
    return _chosen(i[axis], combine(matrix, values))


def _output_type(attrs: WinogradAttrs, ins: Sequence[TensorType]) -> TensorType:
    rank = len(attrs.tile)
    if ins[0].rank != 2 * rank + 2:
        raise fail("winograd_output", f"{ins[0]} holds no transformed tiles of rank {rank}")
    return TensorType(ins[0].dtype, (ins[0].shape[rank], *attrs.size, ins[0].shape[-1]))


def _output(
    b: Builder, attrs: WinogradAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    """Axis after axis; then the tiles are laid side by side, and what sticks out is cut off."""
    rank, source = len(attrs.tile), ins[0]
    for axis in range(rank):
        matrix = transforms(attrs.tile[axis], attrs.window[axis]).outputs
        inner = map(const, (*attrs.tile[: axis + 1], *attrs.points[axis + 1 :]))
        shape = (*inner, *ins[0].shape[rank:])
        source = b.compute("axis", shape, partial(_transformed, matrix, axis, source.at))

    def pixel(n: Expr, *i: Expr) -> Expr:
        *at, c = i
        places = [p % m for p, m in zip(at, attrs.tile, strict=True)]
        tiles = [p // m for p, m in zip(at, attrs.tile, strict=True)]
        return source.at(*places, n, *tiles, c)

    return b.compute("y", outs[0].shape, pixel)


def _flops(part: str) -> Callable[..., Expr]:
    """Arithmetic of a transform: each axis a small matrix product on what the ones before left."""

    def count(attrs: WinogradAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
        tiled = ins[0] if part == "outputs" else outs[0]
        rank = len(attrs.tile)
        total, sizes = 0, list(attrs.points)
        for axis in range(rank):
            matrix = getattr(transforms(attrs.tile[axis], attrs.window[axis]), part)
            total += additions(matrix) * prod(sizes[:axis] + sizes[axis + 1 :])
            sizes[axis] = len(matrix)
        return product(tiled.shape[rank:]) * const(total)

    return count


OPS = (
    Op(
        "winograd_input",
        _input_type,
        "injective",
        WinogradAttrs,
        te=_input,
        flops=_flops("inputs"),
        rereads=True,
        doc="Overlapping tiles of images, transformed for Winograd's convolution.",
    ),
    Op(
        "winograd_output",
        _output_type,
        "injective",
        WinogradAttrs,
        te=_output,
        flops=_flops("outputs"),
        doc="The output of a convolution from Winograd's products.",
    ),
)
