"""Register tiles of reductions whose K is cut into blocks.

For caches, one block of a panel of B stays in L1 for all row tiles, and a block of the rows of A in
L2 for all panels. It costs a load and a store of every accumulator for each block:

    parallel (batch, row group, panel group)
      S = 0                                                  the group's accumulators, in memory
      for each block of K
        for each panel and row tile of the groups
          C = 0; for k in the block: C += A[row, k] * B[k, columns]       registers
          S += C
      out = epilogue(S)

Narrow accumulators add up the few terms of a block; a part of K is as many blocks as they may add
up one by one:

    parallel (batch, row group, panel, row tile)
      S = 0                                                  one tile, wide, in memory
      for each part of K
        T = 0                                                one tile, narrow, in memory
        for each block of the part
          C = 0; for k in the block: C += A[row, k] * B[k, columns]       registers, narrow
          T += C
        S += wide(T)
      out = epilogue(S)

K in one part has no wide accumulators, and K in one block only those in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.annotations import (
    EDGE_ROWS,
    FINITE_WEIGHTS,
    PADDING_LAST,
    SKIP_PADDING,
)
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    block_graph,
    loop_of,
    op_count,
    reductions,
    spatial,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import (
    KBlock,
    blocks_per_part,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel
from tilewright.schedule.builtin.cpu.gemm.prefetching import prefetch_at
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.builtin.cpu.transpose import crossing_axis, transpose_at
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def schedule_k_blocked(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    k_block: KBlock,
    epilogue: Block,
    target: CpuTarget,
    group: tuple[int, int],
    edge: int = 0,
    prefetched: int = 0,
) -> None:
    """Schedule a reduction that is padded to full groups and packed into panels.

    A `group` is so many row tiles and panels, with narrow accumulators one panel. There the last
    rows of all may have tiles of their own, of at least `edge` rows (0: they have none). Rows of
    B are `prefetched` so many iterations before their use (0: they are not).
    """
    if k_block.narrow and tile.accumulators == 1 and k_block.kc % tile.lanes:
        tile = replace(tile, lane_fma=False)
    kernel = _KBlocked(sch, block, axes, tile, k_block, edge, prefetched)
    partial = kernel.cut()
    rows, vector, lane = (
        kernel.narrow_loops(partial, group[0])
        if k_block.narrow
        else kernel.wide_loops(partial, *group)
    )
    unroll_and_vectorize(sch, *rows, vector, lane)
    at = kernel.outer[-1]
    if crossing_axis(epilogue, block_graph(sch.func), target) is not None:
        transpose_at(sch, epilogue.name, at, target)
        written = []
    else:
        written = fuse_epilogue(sch, epilogue.name, at, tile.lanes, unroll_rows=k_block.narrow)
    kernel.mark_edges((*rows, *written))
    sch.decompose_reduction(block.name, kernel.blocks)
    near = "volatile" if k_block.factor else "register"
    sch.set_scope(block.writes[0].buffer, near if k_block.narrow else "global")
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, kernel.outer)


class _KBlocked:
    """One reduction that is being scheduled; `outer` are the loops around the loop `blocks`."""

    def __init__(
        self,
        sch: Schedule,
        block: Block,
        axes: TileAxes,
        tile: Microkernel,
        k_block: KBlock,
        edge: int,
        prefetched: int,
    ) -> None:
        self.sch = sch
        self.block = block
        self.axes = axes
        self.tile = tile
        self.k_block = k_block
        self.edge = edge
        self.prefetched = prefetched
        self.spatial = [it.name for it in spatial(block)]
        self.blocks = f"{block.name}.final.ax{len(self.spatial)}"
        self.outer: list[str] = []
        self.padded = False  # the last block of K, with zeros

    def cut(self) -> str:
        """Cut K into blocks, or into parts of several; the block that computes one of them."""
        if self.k_block.factor == 0:
            return self._split_accumulators(self.block.name)[0]
        axes = reductions(self.block)
        *_, cut = axes = axes[: len(axes) - self.k_block.inner]
        outer = [loop_of(it) for it in axes]
        if self.k_block.factor > 1:
            self.padded = as_int(simplify(cut.extent % self.k_block.factor)) != 0
            if self.padded:
                self.sch.pad_reduction(self.block.name, cut.name, self.k_block.factor)
            outer[-1], _ = self.sch.split(outer[-1], [None, self.k_block.factor])
        blocks = self.sch.fuse(*outer) if len(outer) > 1 else outer[0]
        if self.k_block.narrow:
            count, per_part = blocks_per_part(self.block, self.k_block)
            if 1 < per_part < count:
                blocks, _ = self.sch.split(blocks, [None, per_part])
        return str(self.sch.rfactor(self.block.name, blocks))

    def _final_loops(self) -> dict[str, str]:
        """The loops over what the blocks of K are added to, by axis."""
        names = enumerate(self.spatial)
        return {axis: f"{self.block.name}.final.ax{d}" for d, axis in names}

    def wide_loops(self, partial: str, tiles: int, panels: int) -> tuple[list[str], str, str]:
        """Groups of tiles share a block of K; the loops over a tile's rows, vectors and lanes."""
        sch, name, axes, tile = self.sch, self.block.name, self.axes, self.tile
        loops = self._final_loops()
        assert axes.m is not None
        row_group, row_tile, rows = sch.split(loops[axes.m.name], [None, tiles, tile.mr])
        panel_group, panel, columns = sch.split(loops[axes.n.name], [None, panels, tile.nr])
        vector, lane = sch.split(columns, [None, tile.lanes])
        groups, order = [row_group, panel_group], [panel, row_tile]
        if sch.choose(f"{name}.block_order", "rows", lambda: ("rows", "panels")) == "panels":
            groups.reverse()
        if sch.choose(f"{name}.stationary", "panel", lambda: ("panel", "rows")) == "rows":
            order.reverse()
        self.outer = [*(loops[it.name] for it in axes.batch), *groups]
        sch.reorder(*self.outer, self.blocks, *order, rows, vector, lane)
        self._register_tile(partial, order[-1])
        return [rows], vector, lane

    def narrow_loops(self, partial: str, mc_tiles: int) -> tuple[list[str], str, str]:
        """Each tile goes through K by itself; the loops over its rows, vectors and lanes."""
        sch, axes, tile = self.sch, self.axes, self.tile
        loops = self._final_loops()
        groups: list[str] = []
        tiles: list[str] = []
        rows: list[str] = []
        if axes.m is not None:
            group, at, row = sch.split(loops[axes.m.name], [None, mc_tiles or 1, tile.mr])
            groups, tiles, rows = [group], [at], [row]
        panel, columns = sch.split(loops[axes.n.name], [None, tile.nr])
        vector, lane = sch.split(columns, [None, tile.lanes])
        self.outer = [*(loops[it.name] for it in axes.batch), *groups, panel, *tiles]
        sch.reorder(*self.outer, self.blocks, *rows, vector, lane)
        if self.k_block.factor == 0:
            sch.unroll(self.blocks)
            self._alternate(partial, sch.compute_at(partial, self.outer[-1]))
        else:
            self._narrow_parts(partial)
        return rows, vector, lane

    def _narrow_parts(self, partial: str) -> None:
        """What is added up over K: parts, to a wide accumulator, or the blocks of the only one."""
        count, per_part = blocks_per_part(self.block, self.k_block)
        if 1 < per_part < count:
            self._narrow_part(partial)
            return
        self._narrow_tile(partial, self.blocks)
        if per_part == count:
            self.sch.narrow_accumulator(self.block.name)

    def _narrow_part(self, partial: str) -> None:
        """One tile over one part of K: narrow accumulators in memory."""
        sch = self.sch
        loops = sch.compute_at(partial, self.blocks)
        inner = sch.rfactor(partial, loops[1 + len(self.spatial)])
        blocks = self._add_up(partial, self.blocks)
        self._narrow_tile(inner, blocks)
        sch.narrow_accumulator(partial)
        sch.decompose_reduction(partial, blocks)
        self._set_scope(partial, "volatile")

    def _narrow_tile(self, partial: str, at: str) -> None:
        """One tile over one block of K: narrow accumulators in registers."""
        sch = self.sch
        if self.tile.accumulators == 1:
            sch.narrow_accumulator(partial)
            self._register_tile(partial, at)
            return
        cuts = self._cuts(partial)
        loops = list(sch.compute_at(partial, at))
        split, accumulator = self._split_accumulators(partial)
        around = [loop.name for loop in loops_above(sch.func, split)]
        outer = (*loops[:cuts], accumulator)
        inner = [name for name in around[around.index(at) + 1 :] if name not in outer]
        self._alternate(split, (accumulator, *inner))
        added = self._add_up(partial, at)
        sch.unroll(added)
        sch.decompose_reduction(partial, added)
        self._set_scope(partial, "register")

    def _register_tile(self, partial: str, at: str) -> None:
        """One tile over one block of K, in registers."""
        sch, axes, tile = self.sch, self.axes, self.tile
        cuts = self._cuts(partial)
        loops = list(sch.compute_at(partial, at))
        own = dict(zip(self.spatial, loops[cuts:], strict=False))
        k = loops[cuts + len(own) :]
        vector, lane = sch.split(own.pop(axes.n.name), [None, tile.lanes])
        rows = [] if axes.m is None else [own.pop(axes.m.name)]
        steps = []
        if tile.lane_fma:
            k[-1], inner = sch.split(k[-1], [None, tile.lanes])
            steps = [inner]
        sch.reorder(*loops[:cuts], *own.values(), *k, *steps, *rows, vector, lane)
        unroll_and_vectorize(sch, *steps, *rows, vector, lane)
        self.mark_edges(rows)
        if FINITE_WEIGHTS.is_on(sch.func):
            sch.annotate(k[-1], SKIP_PADDING.key, 1)
        prefetch_at(sch, k[-1], self.prefetched)
        if self.padded:
            sch.annotate(k[-1], PADDING_LAST.key, 1)
        sch.decompose_reduction(partial, k[0])
        self._set_scope(partial, "register")

    def _alternate(self, split: str, loops: Sequence[str]) -> None:
        """Accumulators that alternate: `loops` are those over them, over the tile, and over K."""
        sch, axes = self.sch, self.axes
        accumulator, *inside = loops
        own = dict(zip(self.spatial, inside, strict=False))
        reduced = inside[len(own) :]
        k, steps = (reduced[:-1], reduced[-1:]) if self.tile.lane_fma else (reduced, [])
        vector, lane = sch.split(own.pop(axes.n.name), [None, self.tile.lanes])
        rows = [] if axes.m is None else [own.pop(axes.m.name)]
        sch.reorder(*own.values(), *k, *steps, accumulator, *rows, vector, lane)
        unroll_and_vectorize(sch, *steps, accumulator, *rows, vector, lane)
        self.mark_edges(rows)
        sch.decompose_reduction(split, k[0])
        self._set_scope(split, "register")

    def _split_accumulators(self, name: str) -> tuple[str, str]:
        """Give each element several narrow accumulators; the block that fills them, their loop."""
        sch, tile = self.sch, self.tile
        last = reductions(block_graph(sch.func).block(name))[-1]
        steps = [tile.lanes // tile.accumulators] if tile.lane_fma else []
        *_, accumulator = sch.split(loop_of(last), [None, *steps, tile.accumulators])
        split: str = sch.rfactor(name, accumulator)
        sch.narrow_accumulator(split)
        sch.narrow_accumulator(name)
        return split, accumulator

    def _add_up(self, partial: str, at: str) -> str:
        """Add up what K was cut into; the loop over it. Axes of extent 1 have no loops."""
        sch = self.sch
        above = [loop.name for loop in loops_above(sch.func, partial)]
        *rows, columns, added = above[above.index(at) + 1 :]
        vector, lane = sch.split(columns, [None, self.tile.lanes])
        sch.reorder(added, *rows, vector, lane)
        unroll_and_vectorize(sch, *rows, vector, lane)
        self.mark_edges(rows)
        return added

    def _cuts(self, partial: str) -> int:
        """How many axes a partial result has in front of those of the block."""
        return len(spatial(block_graph(self.sch.func).block(partial))) - len(self.spatial)

    def _set_scope(self, name: str, scope: str) -> None:
        self.sch.set_scope(block_graph(self.sch.func).block(name).writes[0].buffer, scope)

    def mark_edges(self, rows: Sequence[str]) -> None:
        """Let the last rows have tiles of their own, where they have."""
        for loop in rows if self.edge else ():
            self.sch.annotate(loop, EDGE_ROWS.key, self.edge)
