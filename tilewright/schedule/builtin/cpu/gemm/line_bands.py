"""Bands of lines: a convolution with channels first pads a few lines, and uses them in L2.

    padded = ...                 all lines          parallel (image, group, band)
    parallel (image, group, line)            →        padded = the lines under the band's windows
      tiles of pixels and filters                     for lines of the band
                                                        tiles of pixels and filters

A padded copy of whole images is written to memory and read back. The lines of a band stay in L2;
those under windows of two bands are copied twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.arith.affine import stride_of
from tilewright.arith.bounds import bound, loop_ranges
from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.interval import Interval
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    accumulator_dtype,
    block_graph,
    is_plain,
    is_unit,
    loop_of,
    reductions,
    typical_extent,
)
from tilewright.schedule.analysis.tile_axes import TileAxes, match_tile_axes
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import narrow_k_block
from tilewright.schedule.builtin.cpu.gemm.phase_layout import copy_lines
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import STACK_BYTES, CpuTarget

# Bands that every core computes at least.
TASKS_PER_CORE = 4
# By how much full bands may increase the number of lines.
MAX_EXTRA = 1.05
# How often a line is copied at most: writing it to memory and reading it back takes about as long.
MAX_COPIES = 2.0


@dataclass(frozen=True)
class LineBand:
    """`lines` of the axis `line` are computed from what the block `copy` makes for them.

    Its lines are `along` a dimension of what it writes, each stored in so many `phases` (see
    `phase_layout.py`); all bands together, if full, `reach` over so many.
    """

    copy: str
    line: Iter
    lines: int
    along: int
    reach: int
    phases: int

    def split(self, sch: Schedule, block: str) -> tuple[str, str]:
        """The loops over bands, and over the lines of a band; the last one is made full."""
        if as_int(simplify(self.line.extent % self.lines)) != 0:
            copied = block_graph(sch.func).block(self.copy).writes[0].ranges[self.along][0]
            assert isinstance(copied, Var), "lines are copied one by one"
            sch.pad(self.copy, copied.name, self.reach)
            sch.pad(block, self.line.name, self.lines)
        band, line = sch.split(loop_of(self.line), [None, self.lines])
        return band, line

    def copy_at(self, sch: Schedule, loop: str, target: CpuTarget) -> None:
        """Copy the lines of a band in the loop over bands."""
        loops = sch.compute_at(self.copy, loop)
        copy_lines(sch, self.copy, loops, self.phases, target)
        sch.annotate(loops[-2], PARTITION.key, 1)
        sch.set_scope(block_graph(sch.func).block(self.copy).writes[0].buffer, "local")


def choose_band(
    sch: Schedule, name: str, phases: int, constants: frozenset[str], target: CpuTarget
) -> LineBand | None:
    """The bands of the convolution `name`; `None` where its padded copy stays in L2 as a whole."""
    graph = block_graph(sch.func)
    block = graph.block(name)
    axes, lanes = (
        match_tile_axes(block, graph, constants),
        target.lanes(accumulator_dtype(block).bits),
    )
    b = None if axes is None else axes.packed_b
    if axes is None or b is None or not axes.batch or not is_unit(b, graph, axes.n.name):
        return None
    if is_plain(b, block) or narrow_k_block(block) is not None:
        return None
    copies = [x for x in graph.blocks if x.writes[0].buffer == b.buffer]
    if len(copies) != 1 or reductions(copies[0]) or len(graph.consumers(b.buffer)) != 1:
        return None
    line, buffer = axes.batch[-1], graph.buffers[b.buffer]
    sizes, count = [as_int(size) for size in buffer.shape], as_int(line.extent)
    along = [d for d, index in enumerate(b.indices) if stride_of(index, line.name) not in (0, None)]
    if count is None or None in sizes or len(along) != 1:
        return None
    known = [size or 0 for size in sizes]
    if prod(known) * buffer.dtype.bytes <= target.l2 // 2:
        return None
    known[-1] += -(-typical_extent(axes.n.extent) // lanes) * lanes  # read by the last tile at most
    window = _Window(block, b, axes, along[0], known)
    room = min(STACK_BYTES, target.l2 // 2) // buffer.dtype.bytes
    others = prod(as_int(it.extent) or 1 for it in axes.batch[:-1])
    fitting = [
        n
        for n in range(1, count + 1)
        if window.elements(n) <= room
        and -(-count // n) * others >= TASKS_PER_CORE * target.cores
        and -(-count // n) * n <= MAX_EXTRA * count
    ]
    best = min(fitting, key=lambda n: -(-count // n) * window.lines(n), default=0)
    if not best or -(-count // best) * window.lines(best) > MAX_COPIES * known[along[0]]:
        return None
    reach = window.lines(-(-count // best) * best)
    return LineBand(copies[0].name, line, best, along[0], reach, phases)


@dataclass(frozen=True)
class _Window:
    """What one image and group of a convolution reads for some lines, `along` dimension of B."""

    block: Block
    b: Load
    axes: TileAxes
    along: int
    sizes: list[int]

    def lines(self, count: int) -> int:
        """The padded lines under the windows of `count` lines."""
        return self._extent(self.along, count)

    def elements(self, count: int) -> int:
        """The elements of these lines in all channels."""
        before = prod(self._extent(d, count) for d in range(self.along))
        return before * self.lines(count) * prod(self.sizes[self.along + 1 :])

    def _extent(self, dim: int, count: int) -> int:
        ranges = loop_ranges({it.name: it.extent for it in self.block.iters})
        ranges |= {it.name: Interval(0, 0) for it in self.axes.batch}
        ranges[self.axes.batch[-1].name] = Interval(0, count - 1)
        last = bound(self.b.indices[dim], ranges).hi
        return self.sizes[dim] if last is None else last + 1
