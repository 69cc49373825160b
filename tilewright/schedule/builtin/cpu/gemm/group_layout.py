"""Padded data of a convolution in groups: each group's channels in one piece.

    padded[y, x, group, channel]      →      padded[group, y, x, channel]

A tile takes the channels of one group from many pixels. Where all groups of a pixel lie together,
these are short runs far apart: at a distance of some power of two they all fall into the same few
sets of the L1 cache. The copy that pads the data costs the same in either order.
"""

from __future__ import annotations

from tilewright.arith.expr import Var
from tilewright.schedule.analysis.blocks import BlockGraph, reads_of, uses
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.schedule import Schedule


def store_by_group(sch: Schedule, name: str, axes: TileAxes, graph: BlockGraph) -> None:
    """Move the axes that number groups to the front of what block `name` reads and others write."""
    b = axes.packed_b
    if b is None:
        return
    groups = [Var(it.name) for it in axes.batch if uses(b, it.name)]
    computed = {x.buffer for other in graph.blocks for x in other.writes}
    for load in reads_of(graph.block(name)):
        first = [d for d, index in enumerate(load.indices) if index in groups]
        order = sorted(range(len(load.indices)), key=lambda d: (d not in first, d))
        if load is not b and load.buffer in computed and order != sorted(order):
            sch.transform_layout(load.buffer, [(d, 0, 0) for d in order])
