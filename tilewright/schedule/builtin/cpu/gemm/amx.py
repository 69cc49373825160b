"""bf16 GEMMs on AMX: blocks of accumulators in tile registers.

    parallel (some panels of columns, batch, block of rows)
      pack A[rows]                                        L2
      for panels of columns
        C = 0                                             tile registers
        for k in steps of 32: C += A[rows, k] * B[k, columns]
        D = C                                             L1
        out[rows, columns] = epilogue(D)

B must be a constant: it gets the VNNI layout at compile time, in panels of one block's columns. AMX
loads rows of A with any stride, so A is not packed if its rows fill whole blocks. Otherwise, and
where the kernel itself computes A (im2col of a convolution), each task packs one block of rows for
all panels that it multiplies with: nothing is handed from one core to another.
"""

from __future__ import annotations

from math import prod

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
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import divisors
from tilewright.schedule.builtin.cpu.gemm.vnni_layout import pack_vnni
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK, fuse_parallel, is_parallel
from tilewright.schedule.intrin.cpu.amx import COLUMNS, DEPTH, ROWS, amx_names
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import STACK_BYTES, CpuTarget

# How many times as fast as vectors AMX is: a parallel loop needs as much more work to pay.
SPEEDUP = 8
# The part of the products that packing may take where the number of tasks is not known.
PACKING_SHARE = 2
# Steps along K of a row that are packed side by side. They lie 16 or 32 rows apart: more of them
# would be on more pages than the TLB for stores holds, and in more lines than a set of L1.
STREAMS = 8


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

    A task packs one block of rows and multiplies it with `panels`; 0 if all rows are packed before,
    or none is.
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
        self.panels = 0

    def _block(self) -> Block:
        return block_graph(self.sch.func).block(self.name)

    def run(self) -> None:
        """Schedule the kernel."""
        sch, axes = self.sch, self.axes
        epilogue = self._epilogue()
        sums = self._block().writes[0].buffer
        self._pack_left()
        pack_vnni(sch, self.b, self.k, axes.n, COLUMNS)
        for axis, multiple in ((self.m, self.rows), (axes.n, COLUMNS)):
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
            fuse_parallel(sch, self.name, outer[:-1] if self.panels else outer)

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
            self.panels = self._panels_of_a_task()
            sch.pad(self.packing, self._packing_axis(self.m).name, self.rows)

    def _packing_axis(self, axis: Iter) -> Iter:
        """The axis of the packing block that is an axis of the product."""
        block = block_graph(self.sch.func).block(self.packing)
        return spatial(block)[self._position(axis)]

    def _position(self, axis: Iter) -> int:
        return self.a.indices.index(Var(axis.name))

    def _panels_of_a_task(self) -> int:
        """How many panels a block of rows is packed for, 0 if it is too large for a stack."""
        depth = as_int(self.k.extent)
        assert depth is not None
        if self.rows * depth * self.a.dtype.bytes > STACK_BYTES:
            return 0
        choices = divisors(-(-typical_extent(self.axes.n.extent) // COLUMNS))
        known = all(as_int(it.extent) is not None for it in (*self.axes.batch, self.m))
        pack, block = self._cycles(depth)
        if known:
            best = min(choices, key=lambda panels: self._core_cycles(panels, depth))
        else:
            best = next((n for n in choices if n * block >= PACKING_SHARE * pack), choices[-1])
        return self.sch.choose(f"{self.name}.panels", best, lambda: choices)

    def _cycles(self, depth: int) -> tuple[float, float]:
        """What packing a block of rows takes, and multiplying it with a panel."""
        unit = self.target.costs.amx
        step = unit.step * self.rows / unit.rows
        return self.rows * depth * unit.pack, depth // unit.depth * step + unit.start

    def _core_cycles(self, panels: int, depth: int) -> float:
        """What the busiest core takes: packing, products, and the panels that it reads.

        Its tasks have the same panels as long as there are blocks of rows, so it reads them once if
        they stay in L2.
        """
        columns, cores = typical_extent(self.axes.n.extent), self.target.cores if self.busy else 1
        blocks = prod(typical_extent(it.extent) for it in self.axes.batch)
        blocks *= -(-typical_extent(self.m.extent) // self.rows)
        tasks = -(-blocks * -(-columns // (COLUMNS * panels)) // cores)
        pack, block = self._cycles(depth)
        size = panels * COLUMNS * depth * self.b.dtype.bytes
        reads = -(-tasks // blocks) if 2 * size <= self.target.l2 else tasks
        return tasks * (pack + panels * block) + reads * size / self.target.costs.l3_bytes_per_cycle

    def _split(self) -> tuple[list[str], list[str]]:
        """The loops around a block of accumulators, and the two over it.

        The smaller of the two operands is read again in each iteration of the outer loop.
        """
        sch, axes = self.sch, self.axes
        batch = [loop_of(it) for it in axes.batch]
        tile, row = sch.split(loop_of(self.m), [None, self.rows])
        if self.panels:
            part, panel, column = sch.split(loop_of(axes.n), [None, self.panels, COLUMNS])
            return [part, *batch, tile, panel], [row, column]
        panel, column = sch.split(loop_of(axes.n), [None, COLUMNS])
        few_rows = typical_extent(self.m.extent) <= typical_extent(axes.n.extent)
        first = sch.choose(f"{self.name}.n_outer", few_rows, lambda: (False, True))
        return [*batch, *([panel, tile] if first else [tile, panel])], [row, column]

    def _place_packing(self, outer: list[str]) -> None:
        """Pack A inside the loop over its rows, or all of it before."""
        sch, packing = self.sch, self.packing
        row, depth = self._position(self.m), self._position(self.k)
        buffer = block_graph(sch.func).block(packing).writes[0].buffer
        if self.panels:
            loops = list(sch.compute_at(packing, outer[-2]))
        else:
            loops = [loop_of(it) for it in spatial(block_graph(sch.func).block(packing))]
        block, axis = block_graph(sch.func).block(packing), self._packing_axis(self.k)
        period = _steps_of_a_tap(block, axis)
        side = max(n for n in divisors(period) if n <= STREAMS)
        *taps, some, step = sch.split(loops[depth], [None, period // side, side, DEPTH])
        sch.unroll(some)
        sch.vectorize(step)
        if self.panels:
            sch.reorder(*taps, loops[row], some, step)
            sch.set_scope(buffer, "local")
        elif self.busy:
            sch.parallel(sch.fuse(*loops[: row + 1]) if row else loops[0])
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


def _steps_of_a_tap(block: Block, axis: Iter) -> int:
    """How many steps along K have the same tap of the filter: the period of im2col's divisions.

    All of them if K is not divided: then rows are copied as they are.
    """
    extent = as_int(axis.extent)
    assert extent is not None
    found = [
        as_int(e.b) or 0
        for load in reads_of(block)
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.a is Var(axis.name)
    ]
    whole = [n for n in found if n and n % DEPTH == 0 and extent % n == 0]
    return min(whole, default=DEPTH if found else extent) // DEPTH
