"""bf16 GEMMs on AMX: blocks of accumulators in tile registers.

    parallel (batch, panel of columns, block of rows)
      C = 0                                               tile registers
      for k in steps of 32: C += A[rows, k] * B[k, columns]
      D = C                                               L1
      out[rows, columns] = epilogue(D)

B must be a constant: it gets the VNNI layout at compile time, in panels of one block's columns. AMX
loads rows of A with any stride, so A is not copied if its rows fill whole blocks. Otherwise, and
where the kernel itself computes A (im2col of a convolution), A is packed block by block: for a few
blocks at a time where there are enough of them for all cores.
"""

from __future__ import annotations

from tilewright.arith.expr import Binary, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    loop_of,
    op_count,
    reads_of,
    spatial,
    typical_extent,
)
from tilewright.schedule.analysis.gemm import GemmAxes, match_bf16_gemm, operand_load
from tilewright.schedule.analysis.tile_axes import tile_axes
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue
from tilewright.schedule.builtin.cpu.gemm.vnni_layout import pack_vnni
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK, fuse_parallel, is_parallel
from tilewright.schedule.intrin.cpu.amx import COLUMNS, DEPTH, ROWS, amx_names
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# How many times as fast as vectors AMX is: a parallel loop needs as much more work to pay.
SPEEDUP = 8
# Bytes of packed rows of A: they stay in L2, and are allocated on a thread's stack.
PACKED_BYTES = 256 * 1024
# With so many times as many columns as rows, splitting the columns over cores reads less of B.
SPLIT_N_RATIO = 2
# Steps of packing that may be unrolled.
WRITTEN_OUT = 48


def match_amx_gemm(
    block: Block, graph: BlockGraph, constants: frozenset[str], target: CpuTarget
) -> GemmAxes | None:
    """The GEMM of a block that the target's AMX can compute, `None` if there is none."""
    row = INTRINSICS[amx_names(ROWS)[1]]
    if not row.available(target.architecture, target.features):
        return None
    gemm = match_bf16_gemm(block, constants)
    if gemm is None or not gemm.m:
        return None
    return gemm if (as_int(gemm.k[0].extent) or 1) % DEPTH == 0 else None


def schedule_amx(sch: Schedule, name: str, gemm: GemmAxes, target: CpuTarget) -> None:
    """Schedule a GEMM, the block that computes A, and the epilogue."""
    _Matrix(sch, name, gemm, target).run()


class _Matrix:
    """One kernel that is being scheduled: `rows` are those of a block of accumulators.

    `together` blocks of rows are packed at a time, inside the loop over them; 0 if all are packed
    before that loop, or none is.
    """

    def __init__(self, sch: Schedule, name: str, gemm: GemmAxes, target: CpuTarget) -> None:
        self.sch = sch
        self.name = name
        self.a, self.b, (self.k,) = operand_load(gemm.a), operand_load(gemm.b), gemm.k
        self.axes = tile_axes(self._block(), self.b)
        assert self.axes.m is not None
        self.m = self.axes.m
        self.target = target
        rows = as_int(self.m.extent)
        few = rows is not None and rows <= ROWS
        self.rows = sch.choose(
            f"{name}.mr", ROWS if few else 2 * ROWS, lambda: (ROWS, 2 * ROWS)[: 1 if few else 2]
        )
        self.busy = is_parallel(sch, name, op_count(self._block()), PARALLEL_WORK * SPEEDUP)
        self.packing = ""
        self.together = 0

    def _block(self) -> Block:
        return block_graph(self.sch.func).block(self.name)

    def run(self) -> None:
        """Schedule the kernel."""
        sch, axes = self.sch, self.axes
        epilogue = self._epilogue()
        sums = self._block().writes[0].buffer
        self._pack_left()
        pack_vnni(sch, self.b, self.k, axes.n, COLUMNS)
        for axis, multiple in ((self.m, self._whole_rows()), (axes.n, COLUMNS)):
            sch.pad(self.name, axis.name, multiple)
        near = sch.cache_read(epilogue, sums, "local")
        depth = sch.split(loop_of(self.k), [None, DEPTH // 2, 2])
        outer, inner = self._split()
        sch.reorder(*outer, depth[0], *inner, *depth[1:])
        if self.packing:
            self._place_packing(outer)
        sch.reverse_compute_at(near, outer[-1])
        lanes = self.target.lanes(F32.bits)
        fuse_epilogue(sch, epilogue, outer[-1], lanes, unroll_rows=False)
        sch.decompose_reduction(self.name, depth[0])
        self._use_unit(near, inner[0])
        sch.set_scope(sums, "local")
        if self.busy:
            shared = outer[: len(axes.batch) + 1] if self.together else outer
            fuse_parallel(sch, self.name, shared)

    def _epilogue(self) -> str:
        """The block that reads the accumulators, with all later blocks inlined into it."""
        sch = self.sch
        blocks = [b.name for b in block_graph(sch.func).blocks]
        after = blocks[blocks.index(self.name) + 1 :]
        for name in after[:-1]:
            sch.inline(name)
        written: str = after[-1] if after else sch.cache_write(self.name, "local")
        return written

    def _pack_left(self) -> None:
        """Pack A into full blocks of rows, where it must be packed."""
        sch, left = self.sch, self.a
        graph = block_graph(sch.func)
        writer = next((b for b in graph.blocks if b.writes[0].buffer == left.buffer), None)
        if writer is not None:
            self.packing = writer.name
        elif as_int(simplify(self.m.extent % self.rows)) != 0:
            self.packing = sch.cache_read(self.name, left.buffer, "global")
        if self.packing:
            row = self._packing_axis(self.m)
            self.together = self._rows_together()
            sch.pad(self.packing, row.name, self._whole_rows())

    def _whole_rows(self) -> int:
        """The multiple to which the number of rows is padded."""
        return self.rows * max(1, self.together)

    def _packing_axis(self, axis: Iter) -> Iter:
        """The axis of the packing block that is an axis of the product."""
        block = block_graph(self.sch.func).block(self.packing)
        return spatial(block)[self._position(axis)]

    def _position(self, axis: Iter) -> int:
        return self.a.indices.index(Var(axis.name))

    def _rows_together(self) -> int:
        """How many blocks of rows to pack at a time, 0 if there are too few for all cores.

        As many as fit in L2 without more load imbalance.
        """
        depth = as_int(self.k.extent)
        assert depth is not None
        fitting = PACKED_BYTES // (self.rows * depth * self.a.dtype.bytes)
        rows = as_int(self.m.extent)
        if rows is None or self._shares_columns(rows, depth):
            return 0
        cores = self.target.cores
        blocks = -(-typical_extent(self.m.extent) // self.rows)
        choices = range(1, min(fitting, -(-blocks // cores)) + 1) if blocks >= cores else ()
        best = min(choices, key=lambda n: (-(-blocks // (n * cores)) * n, -n), default=0)
        return self.sch.choose(f"{self.name}.mc_tiles", best, lambda: (0, *choices))

    def _shares_columns(self, rows: int, depth: int) -> bool:
        """Whether columns are split over cores, so that each reads a part of B only.

        It pays where columns are many and B exceeds L2.
        """
        columns = typical_extent(self.axes.n.extent)
        weights = columns * depth * self.b.dtype.bytes
        many = columns >= SPLIT_N_RATIO * rows and 2 * weights >= self.target.l2
        return self.busy and many

    def _split(self) -> tuple[list[str], list[str]]:
        """The loops around a block of accumulators, and the two over it.

        The smaller of the two operands is read again in each iteration of the outer loop.
        """
        sch, axes = self.sch, self.axes
        batch = [loop_of(it) for it in axes.batch]
        panel, column = sch.split(loop_of(axes.n), [None, COLUMNS])
        if self.together:
            some, tile, row = sch.split(loop_of(self.m), [None, self.together, self.rows])
            return [*batch, some, panel, tile], [row, column]
        tile, row = sch.split(loop_of(self.m), [None, self.rows])
        few_rows = typical_extent(self.m.extent) <= typical_extent(axes.n.extent)
        first = sch.choose(f"{self.name}.n_outer", few_rows, lambda: (False, True))
        return [*batch, *([panel, tile] if first else [tile, panel])], [row, column]

    def _place_packing(self, outer: list[str]) -> None:
        """Pack A inside the loop over its rows, or all of it before."""
        sch, packing = self.sch, self.packing
        row, depth = self._position(self.m), self._position(self.k)
        buffer = block_graph(sch.func).block(packing).writes[0].buffer
        if self.together:
            loops = list(sch.compute_at(packing, outer[len(self.axes.batch)]))
        else:
            loops = [loop_of(it) for it in spatial(block_graph(sch.func).block(packing))]
        block, axis = block_graph(sch.func).block(packing), self._packing_axis(self.k)
        written = _steps_written_out(block, axis)
        _, some, step = sch.split(loops[depth], [None, written, DEPTH])
        sch.unroll(some)
        sch.vectorize(step)
        if not self.together and self.busy:
            sch.parallel(loops[row])
        batch = [(d, 0, 0) for d in range(len(loops)) if d not in (row, depth)]
        tile = [(row, self.rows, 0), (depth, DEPTH, 0), (row, self.rows, 1), (depth, DEPTH, 1)]
        sch.transform_layout(buffer, [*batch, *tile])

    def _use_unit(self, near: str, row: str) -> None:
        """Tensorize the loops that zero, update and store the accumulators."""
        sch = self.sch
        zero, step, store = amx_names(self.rows)
        init = loops_above(sch.func, f"{self.name}.init")[-2].name
        sch.tensorize(sch.blockize(init), zero)
        sch.tensorize(sch.blockize(row), step)
        sch.tensorize(sch.blockize(loops_above(sch.func, near)[-2].name), store)


def _steps_written_out(block: Block, axis: Iter) -> int:
    """How many steps along K to unroll: the period of divisions in the indices of im2col.

    The tap of the filter that an element belongs to is then a constant.
    """
    found = [
        as_int(e.b) or 0
        for load in reads_of(block)
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.a is Var(axis.name)
    ]
    extent = as_int(axis.extent) or 0
    whole = [n // DEPTH for n in found if n and n % DEPTH == 0 and extent % n == 0]
    return max((n for n in whole if n <= WRITTEN_OUT), default=1)
