"""The cost of a convolution or pooling with channels first and with channels last.

The unit is a multiply-add at full vector throughput; figures are in `target/calibration/cpu.py`.
Costs follow from the vectorized axis:

| windows                | channels last                      | channels first                     |
|------------------------|------------------------------------|------------------------------------|
| one tap, all channels  | rows of pixels x packed weights    | weights x columns of pixels, which |
|                        |                                    | are packed while the model runs    |
| many taps, or groups of| vectors of (a group's) filters     | vectors of pixels of one line, or  |
| channels               |                                    | of all lines under single taps;    |
|                        |                                    | stepping over all channels they    |
|                        |                                    | are scattered: far slower          |
| one channel (depthwise,| vectors of channels                | vectors of pixels of one line,     |
| pooling)               |                                    | taken apart where windows step     |
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, Shape
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.pool import PoolAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs, channels, spatial
from tilewright.target.calibration.cpu import LAYOUTS
from tilewright.target.cpu import CpuTarget
from tilewright.target.target import Target


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
    by_line = attrs.groups > 1 or (taps > 1 and not stepping)
    if by_line and isinstance(target, CpuTarget):
        filters = typical(weights[:1]) // attrs.groups
        line = out[-1:] if taps > 1 else out
        return _by_line(work, filters, line, stepping, target.lanes(n.type.dtype.bits))
    if attrs.groups > 1 or taps > 1:
        return LayoutCost(work * LAYOUTS.scattered, work)
    x = graph.tensor_type(n.inputs[0]).shape
    read = typical((x[0], channels(attrs.layout, x), *out))
    extra = read * (LAYOUTS.gather if stepping else LAYOUTS.pack)
    return LayoutCost(work * _waste(typical(out)) + extra, work)


def transpose_cost(shape: Shape) -> float:
    """What it costs to move the channels of a value; nothing where there is nothing to move."""
    if typical(shape[1:2]) == 1 or typical(shape[2:]) == 1:
        return 0.0
    return typical(shape) * LAYOUTS.transpose


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


def _by_line(work: float, filters: int, line: Shape, stepping: bool, lanes: int) -> LayoutCost:
    # With one vector of filters, every FMA loads a pixel of its own.
    last = work * _waste(filters, lanes) * (LAYOUTS.line if filters <= lanes else 1.0)
    if any(as_int(size) is None for size in line):
        return LayoutCost(last * LAYOUTS.scattered, last)
    step = LAYOUTS.step if stepping else 1.0
    return LayoutCost(work * LAYOUTS.line * step * _waste(typical(line), lanes), last)


def _waste(columns: int, vector: int = LAYOUTS.vector) -> float:
    """By how much rounding up to whole vectors makes the work more."""
    return -(-columns // vector) * vector / columns
