"""The cost of a convolution with and without Winograd's method, and the best tile.

The model counts, on one core, cycles of the products (or of reading the filters from memory, where
that takes longer), of moving transformed tiles to the products and back, and of the transforms'
arithmetic. A larger tile has fewer products, but more points: more filters to keep and to read, and
more of a tile that sticks out of a small image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod

from tilewright.ops.conv.toom_cook import POINTS, additions, transforms
from tilewright.target.cpu import LINE_BYTES, CpuTarget

# What a byte of filters more than the convolution has costs, as bytes read from memory.
MEMORY_PRICE = 1.0
# Rounding errors may be this much larger than without, by the bits of an element: 1e-5 of the
# largest output in f32; f16 has no digits to lose, which leaves tiles of 2.
MAX_AMPLIFICATION = {32: 16.0, 16: 2.0}
# What must be gained: the model is not more exact than this.
MIN_GAIN = 1.2
MAX_TILE = 6


@dataclass(frozen=True)
class ConvShape:
    """A convolution in numbers: images, output sizes, taps of the window, channels, filters.

    A result that is `transposed` next is so in L2 by the convolution itself, see `passes/fuse.py`;
    Winograd's method leaves it to a kernel that reads and writes it once more.
    """

    images: int
    size: tuple[int, ...]
    window: tuple[int, ...]
    channels: int
    filters: int
    bits: int = 32
    transposed: bool = False


def best_tile(shape: ConvShape, target: CpuTarget) -> tuple[int, ...] | None:
    """The output tile with which Winograd's method is fastest; `None` where it does not pay."""
    found = [
        (winograd_cycles(shape, tile, target), tile) for tile in _tiles(shape.window, shape.bits)
    ]
    cycles, tile = min(found, default=(0.0, ()))
    return tile if tile and cycles * MIN_GAIN < direct_cycles(shape, target) else None


def least_cycles(shape: ConvShape, target: CpuTarget) -> float:
    """How long the convolution takes, by Winograd's method where that pays."""
    tile = best_tile(shape, target)
    return direct_cycles(shape, target) if tile is None else winograd_cycles(shape, tile, target)


@cache
def _tiles(window: tuple[int, ...], bits: int) -> tuple[tuple[int, ...], ...]:
    """All tiles whose rounding errors are small; an axis with one tap needs none."""
    sizes = [
        [1] if r == 1 else [m for m in range(2, MAX_TILE + 1) if m + r - 2 in POINTS]
        for r in window
    ]
    found = []
    for tile in product(*sizes):
        errors = [transforms(m, r).amplification for m, r in zip(tile, window, strict=True)]
        if max(window) > 1 and prod(errors) <= MAX_AMPLIFICATION[bits]:
            found.append(tile)
    return tuple(found)


def direct_cycles(shape: ConvShape, target: CpuTarget) -> float:
    """The convolution as it is: a product for every tap."""
    pixels = shape.images * prod(shape.size)
    return _product_cycles(shape, 1, pixels, shape.channels * prod(shape.window), target)


def winograd_cycles(shape: ConvShape, tile: tuple[int, ...], target: CpuTarget) -> float:
    """The convolution by Winograd's method with this output tile."""
    axes = tuple(zip(tile, shape.window, strict=True))
    points = prod(m + r - 1 for m, r in axes)
    tiles = shape.images * prod(-(-n // m) for n, m in zip(shape.size, tile, strict=True))
    extra = (points - prod(shape.window)) * shape.channels * shape.filters * shape.bits / 8
    lanes, costs = target.lanes(shape.bits), target.costs
    inputs = -(-shape.channels // lanes) * _operations(axes, "inputs")
    outputs = -(-shape.filters // lanes) * _operations(axes, "outputs")
    return (
        _product_cycles(shape, points, tiles, shape.channels, target)
        + _tile_cycles(points * tiles, shape, target)
        + (_transpose_cycles(shape, target) if shape.transposed else 0.0)
        + tiles * (inputs + outputs) / costs.fma_units
        + extra * MEMORY_PRICE / costs.memory_bytes_per_cycle
    )


def _product_cycles(
    shape: ConvShape, matrices: int, rows: int, depth: int, target: CpuTarget
) -> float:
    """`matrices` products of `rows` by `depth` with `depth` by filters."""
    costs = target.costs
    steps = matrices * rows * shape.filters * (depth + costs.gemm_start_steps)
    busy = steps / (costs.fma_units * target.lanes(shape.bits) * costs.gemm_efficiency)
    weights = matrices * depth * shape.filters * shape.bits / 8
    return max(busy, weights / costs.memory_bytes_per_cycle)


def _tile_cycles(elements: int, shape: ConvShape, target: CpuTarget) -> float:
    """Writing transformed tiles and reading them again, so many elements of each channel.

    A transform writes, or reads, the channels of one point in one place and those of the next in
    another: out of L2, each is a stream that is waited for.
    """
    cycles = 0.0
    for channels in (shape.channels, shape.filters):
        size = elements * channels * shape.bits / 8
        cycles += 2 * size / target.costs.l3_bytes_per_cycle
        if size > target.l2:
            _, wait = target.costs.line_fill_beyond_l2(size <= target.l3)
            cycles += elements * wait
    return cycles


def _transpose_cycles(shape: ConvShape, target: CpuTarget) -> float:
    """Transposing the result: every line is a stream, and what is written is read before."""
    size = shape.images * prod(shape.size) * shape.filters * shape.bits / 8
    if size <= target.l2 // 2:
        return 0.0
    fill, wait = target.costs.line_fill_beyond_l2(size <= target.l3)
    return size / LINE_BYTES * (3 * fill + 2 * wait)


@cache
def _operations(axes: tuple[tuple[int, int], ...], part: str) -> int:
    """Arithmetic of a transform on one tile: along one axis after another, outputs get fewer."""
    total, sizes = 0, [m + r - 1 for m, r in axes]
    for axis, (m, r) in enumerate(axes):
        matrix = getattr(transforms(m, r), part)
        total += additions(matrix) * prod(sizes[:axis] + sizes[axis + 1 :])
        sizes[axis] = len(matrix)
    return total
