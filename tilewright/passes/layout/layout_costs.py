"""The cost of a convolution or pooling with channels first and with channels last.

The unit is a multiply-add at full vector throughput; figures are in `target/calibration/cpu.py`.
Costs follow from the vectorized axis:

| windows                | channels last                      | channels first                     |
|------------------------|------------------------------------|------------------------------------|
| one tap, all channels  | rows of pixels x packed weights    | weights x columns of pixels, which |
|                        |                                    | are packed while the model runs    |
| many taps, or groups of| vectors of (a group's) filters     | vectors of pixels of one line, or  |
| channels               | (fewer with Winograd's method)     | of all lines under single taps     |
| one channel (depthwise,| vectors of channels                | vectors of pixels of one line,     |
| pooling)               |                                    | taken apart where windows step     |
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, as_int
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, Shape, TensorType
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.pool import PoolAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs, channels, spatial
from tilewright.passes.conv.winograd import winograd_share
from tilewright.target.calibration.cpu import LAYOUTS
from tilewright.target.cpu import LINE_BYTES, CpuTarget
from tilewright.target.target import Target

# How often a line moves that is copied: it is read, read for being written, and written back.
MOVES = 3
# How often bands of lines copy a line at most, as their schedule has it.
MAX_COPIES = 2


class LayoutCost(NamedTuple):
    """The cost of one node in either layout."""

    channels_first: float
    channels_last: float


def window_cost(graph: Graph, n: Node, target: Target) -> LayoutCost:
    """What a node with windows costs in either layout, transposes around it not counted."""
    attrs = n.attrs
    assert isinstance(attrs, WindowAttrs)
    out = spatial(attrs.layout, n.type.shape)
    stepping = max(attrs.strides) > 1
    if isinstance(attrs, PoolAttrs):
        return _single_channel(typical(n.type.shape) * prod(attrs.kernel), out, attrs.strides[-1])
    weights = graph.tensor_type(n.inputs[1]).shape
    work = float(typical(n.type.shape) * typical(weights[1:]))
    taps = typical(weights[2:])
    if type(attrs) is not ConvAttrs:
        return LayoutCost(work * LAYOUTS.scattered, work)
    if typical(weights[1:2]) == 1 < attrs.groups:
        return _single_channel(work, out, attrs.strides[-1])
    x = graph.tensor_type(n.inputs[0]).shape
    if attrs.groups > 1 or taps > 1:
        if not isinstance(target, CpuTarget):
            return LayoutCost(work * LAYOUTS.scattered, work)
        filters = typical(weights[:1]) // attrs.groups
        line = out[-1:] if taps > 1 else out
        cost = _by_line(work, filters, line, target.lanes(n.type.dtype.bits), target.has_lane_fma)
        if taps == 1:
            return cost
        copied = typical(x) * (LAYOUTS.gather if stepping else LAYOUTS.pack)
        copied += _far_windows(attrs, x, out, weights, n.type.dtype, target)
        share = winograd_share(n, graph.tensor_type(n.inputs[1]), target)
        return LayoutCost(cost.channels_first + copied, cost.channels_last * share)
    read = typical((x[0], channels(attrs.layout, x), *out))
    extra = read * (LAYOUTS.gather if stepping else LAYOUTS.pack)
    return LayoutCost(work * _waste(typical(out)) + extra, work)


def _far_windows(
    attrs: ConvAttrs, x: Shape, out: Shape, weights: Shape, dtype: DType, target: CpuTarget
) -> float:
    """The time of cache lines beyond L2 from which windows with channels first are read.

    A padded copy that exceeds L2 is made in bands of lines, see `cpu/gemm/line_bands.py`. Where
    windows reach over so many lines that bands would copy most of them several times, all of it is
    made first, and for every line of the result the lines of each channel are streams from there.
    """
    if attrs.rank < 2 or any(as_int(d) is None for d in (*out, *weights)):
        return 0.0
    step, lanes = attrs.strides[-2], target.lanes(dtype.bits)
    under = typical(weights[-2:-1]) * attrs.dilations[-2] - attrs.dilations[-2] + 1
    line = typical(x[-1:]) + attrs.before[-1] + attrs.after[-1]
    height = typical(x[-2:-1]) + attrs.before[-2] + attrs.after[-2]
    copy = typical(x[:-2]) * height * line * dtype.bytes
    overhang = -(-typical(out[-1:]) // lanes) * lanes
    fitting = target.l2 // 2 // (typical(weights[1:2]) * (line + overhang) * dtype.bytes)
    together = (fitting - under) // step + 1
    if copy <= target.l2 // 2 or fitting <= MAX_COPIES * together * step:
        return 0.0
    fill, wait = target.costs.line_fill_beyond_l2(copy <= target.l3)
    near, _ = target.costs.line_fill[0]
    streams = typical(x[:2]) * typical(out[:-1]) * typical(weights[2:-1])
    cycles = streams * (wait + line * dtype.bytes / LINE_BYTES * fill)
    cycles += copy / LINE_BYTES * MOVES * (fill - near)
    return cycles * lanes * target.costs.fma_units


def transpose_cost(t: TensorType, target: Target) -> float:
    """What it costs to move the channels of a value; nothing where there is nothing to move."""
    shape = t.shape
    if typical(shape[1:2]) == 1 or typical(shape[2:]) == 1:
        return 0.0
    elements = typical(shape)
    return elements * LAYOUTS.transpose + _moved_lines(elements * t.dtype.bytes, t, target)


def _moved_lines(size: int, t: TensorType, target: Target) -> float:
    """The time of cache lines that are further away than L2: of a value, and of its copy."""
    if not isinstance(target, CpuTarget) or 2 * size <= target.l2:
        return 0.0
    near, _ = target.costs.line_fill[0]
    far, _ = target.costs.line_fill_beyond_l2(2 * size <= target.l3)
    a_cycle = target.lanes(t.dtype.bits) * target.costs.fma_units
    return size / LINE_BYTES * MOVES * (far - near) * a_cycle


def typical(sizes: Shape) -> int:
    """The product of sizes, each that is unknown taken to be typical."""
    return prod(max(1, _size(d)) for d in sizes)


def _size(size: Expr) -> int:
    return int(evaluate(size, dict.fromkeys(free_vars(size), TYPICAL_SIZE)))


def _single_channel(work: float, out: Shape, step: int) -> LayoutCost:
    # Lines can only be cut at their ends where their length is known. A vector of every second
    # pixel is picked from two.
    gaps = LAYOUTS.scattered if as_int(out[-1]) is None else min(step, LAYOUTS.scattered)
    return LayoutCost(work * gaps * _waste(typical(out[-1:])), work)


def _by_line(work: float, filters: int, line: Shape, lanes: int, by_lane: bool) -> LayoutCost:
    last = work * _waste(filters, lanes) * _operand_loads(filters, lanes)
    if any(as_int(size) is None for size in line):
        return LayoutCost(last * LAYOUTS.scattered, last)
    pixels = typical(line)
    # FMAs by lane take pixels from vectors of channels; along lines, each weight is a load.
    each = LAYOUTS.single_vector if by_lane else max(LAYOUTS.line, _operand_loads(pixels, lanes))
    return LayoutCost(work * each * _waste(pixels, lanes), last)


def _operand_loads(columns: int, lanes: int) -> float:
    """What an FMA costs: of a single vector, every one loads an operand of its own."""
    return LAYOUTS.single_vector if columns <= lanes else 1.0


def _waste(columns: int, vector: int = LAYOUTS.vector) -> float:
    """By how much rounding up to whole vectors makes the work more."""
    return -(-columns // vector) * vector / columns
