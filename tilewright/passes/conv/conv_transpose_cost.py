"""The cost of a transposed convolution as one GEMM and `col2im`, and as the phases of `polyphase`.

The model counts, on one core, cycles of the products and of what is moved between kernels. The GEMM
has a row for each tap of each filter and no padding, but all its products are stored, and summed
later. The phases are convolutions: they store sums, but run in vectors of few filters or along
short lines, and their results are interleaved by kernels of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from tilewright.ops.conv.polyphase import split_phases
from tilewright.target.calibration.cpu import LAYOUTS
from tilewright.target.cpu import CpuTarget

# How often the results of phases are written or read: written, read and interleaved, cut to size.
INTERLEAVED_PASSES = 3
CUT_PASSES = 2


@dataclass(frozen=True)
class TransposedShape:
    """A transposed convolution in numbers; `channels` are those of one group."""

    images: int
    size: tuple[int, ...]
    result: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    channels: int
    filters: int
    groups: int
    bits: int


def is_gemm_faster(shape: TransposedShape, target: CpuTarget) -> bool:
    """Whether the GEMM takes no longer than the phases."""
    return gemm_cycles(shape, target) <= phases_cycles(shape, target)


def gemm_cycles(shape: TransposedShape, target: CpuTarget) -> float:
    """The GEMM, whose products are written and read once, and the sums of `col2im`."""
    rows, columns = shape.filters * prod(shape.kernel), prod(shape.size)
    products = shape.images * rows * columns
    busy = _fmas(products, shape.channels, target) * _waste(columns, target.lanes(shape.bits))
    moved = 2 * products + shape.images * shape.filters * prod(shape.result)
    return _cycles(busy, shape, target) + _moving(moved, products, shape, target)


def phases_cycles(shape: TransposedShape, target: CpuTarget) -> float:
    """The convolutions of all phases, each in the better layout, and the interleaving."""
    places = [-(-n // s) for n, s in zip(shape.result, shape.strides, strict=True)]
    busy = 0.0
    axes = map(split_phases, shape.kernel, shape.strides)
    for chosen in product(*axes):
        filters = shape.filters * prod(phases.number for phases in chosen)
        taps = prod(phases.taps for phases in chosen)
        if taps:
            busy += _conv_fmas(shape, filters, taps, places, target)
    result = shape.images * shape.filters * prod(places) * prod(shape.strides)
    read = shape.images * shape.channels * shape.groups * prod(shape.size)
    moved = _interleaved_passes(shape) * result + 2 * read
    return _cycles(busy, shape, target) + _moving(moved, result + read, shape, target)


def _interleaved_passes(shape: TransposedShape) -> int:
    if max(shape.strides) == 1:
        return 1
    whole = all(
        n % s == 0 and p % s == 0
        for n, p, s in zip(shape.result, shape.before, shape.strides, strict=True)
    )
    return INTERLEAVED_PASSES + (0 if whole else CUT_PASSES)


def _conv_fmas(
    shape: TransposedShape, filters: int, taps: int, places: list[int], target: CpuTarget
) -> float:
    """One convolution, in vectors of pixels or of filters; see `layout_costs`."""
    lanes, group = target.lanes(shape.bits), filters // shape.groups
    work = _fmas(shape.images * filters * prod(places), shape.channels * taps, target)
    columns = places[-1] if taps > 1 else prod(places)
    first = _waste(columns, lanes) * (LAYOUTS.line if taps > 1 else 1.0)
    last = _waste(group, lanes) * (LAYOUTS.single_vector if group <= lanes else 1.0)
    return work * min(first, last)


def _fmas(sums: int, depth: int, target: CpuTarget) -> float:
    """Sums of `depth` products each, and their start."""
    return float(sums * (depth + target.costs.gemm_start_steps))


def _waste(columns: int, lanes: int) -> float:
    """By how much rounding up to whole vectors makes the work more."""
    return -(-columns // lanes) * lanes / columns


def _cycles(fmas: float, shape: TransposedShape, target: CpuTarget) -> float:
    costs = target.costs
    return fmas / (costs.fma_units * target.lanes(shape.bits) * costs.gemm_efficiency)


def _moving(elements: int, held: int, shape: TransposedShape, target: CpuTarget) -> float:
    """Moving so many elements from kernel to kernel, where so many lie in between."""
    size, costs = shape.bits / 8, target.costs
    if held * size <= target.l2 * target.cores:
        return elements * size / costs.l2_bytes_per_cycle
    far = costs.l3_bytes_per_cycle if held * size <= target.l3 else costs.memory_bytes_per_cycle
    return elements * size / far
