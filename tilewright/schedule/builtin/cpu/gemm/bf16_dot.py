"""Products of bf16 in vectors of pairs: register tiles of sums.

    parallel (batch, panel of columns, tile of rows)
      sums = 0                                             registers
      for k in steps of 2: sums[rows, columns] += A[row, k : 2] . B[k : 2, columns]
      out[rows, columns] = epilogue(sums)

The constant operand B is packed at compile time into panels of one tile's columns, two elements of
K side by side.
"""

from __future__ import annotations

from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.bf16_gemm import Bf16Gemm, match_bf16_gemm
from tilewright.schedule.analysis.blocks import BlockGraph, loop_of, op_count, typical_extent
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    Microkernel,
    MicrokernelProblem,
    choose_tile,
)
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.intrin.cpu.bf16_dot import BF16_PAIRS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def match_bf16_dot_gemm(
    block: Block, graph: BlockGraph, constants: frozenset[str], target: CpuTarget
) -> Bf16Gemm | None:
    """The gemm of a product that the target can compute in pairs, `None` if it is none."""
    gemm = match_bf16_gemm(block, constants) if pair_instruction(target) else None
    even = gemm is not None and (as_int(gemm.k.extent) or 1) % 2 == 0
    return gemm if even else None


def pair_instruction(target: CpuTarget) -> str | None:
    """The instruction that multiplies pairs of bf16 in vectors, if the target has one."""
    available = (
        name
        for name, row in BF16_PAIRS.items()
        if row.available(target.architecture, target.features)
    )
    return next(available, None)


def schedule_bf16_dot(
    sch: Schedule, block: Block, gemm: Bf16Gemm, epilogue: Block, target: CpuTarget
) -> None:
    """Schedule a product and the block that writes its result out."""
    instruction = pair_instruction(target)
    assert instruction is not None
    tile = _choose(sch, block.name, gemm, target)
    _pack(sch, gemm, tile)
    sch.pad(block.name, gemm.n.name, tile.nr)
    if gemm.m is not None:
        sch.pad(block.name, gemm.m.name, tile.mr)
    panel, vector, lane = sch.split(loop_of(gemm.n), [None, tile.nr // tile.lanes, tile.lanes])
    pairs, pair = sch.split(loop_of(gemm.k), [None, 2])
    outer, rows = [*(loop_of(it) for it in gemm.batch), panel], []
    if gemm.m is not None:
        number, row = sch.split(loop_of(gemm.m), [None, tile.mr])
        outer.append(number)
        rows.append(row)
    sch.reorder(*outer, pairs, *rows, vector, lane, pair)
    _write_out(sch, epilogue, outer[-1], tile)
    sch.decompose_reduction(block.name, pairs)
    for loop in (*rows, vector):
        sch.unroll(loop)
    start_in_vectors(sch, block.name, outer)
    sch.tensorize(sch.blockize(lane), instruction)
    sch.set_scope(block.writes[0].buffer, "register")
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, outer)


def _choose(sch: Schedule, name: str, gemm: Bf16Gemm, target: CpuTarget) -> Microkernel:
    problem = MicrokernelProblem(
        m=1 if gemm.m is None else typical_extent(gemm.m.extent),
        n=typical_extent(gemm.n.extent),
        k=typical_extent(gemm.k.extent) // 2,
        bits=F32.bits,
        reuses_b=True,
    )
    return choose_tile(sch, name, problem, target)


def _pack(sch: Schedule, gemm: Bf16Gemm, tile: Microkernel) -> None:
    """Panels of one tile's columns, two elements of the reduction side by side."""
    right = gemm.b
    position = {i.name: d for d, i in enumerate(right.indices) if isinstance(i, Var)}
    depth, column = position[gemm.k.name], position[gemm.n.name]
    batch = [(position[it.name], 0, 0) for it in gemm.batch if it.name in position]
    panel = [(column, tile.nr, 0), (depth, 2, 0), (column, tile.nr, 1), (depth, 2, 1)]
    sch.transform_layout(right.buffer, [*batch, *panel])


def start_in_vectors(sch: Schedule, name: str, outer: list[str]) -> None:
    """What starts the sums is written out row by row, a vector at a time."""
    around = [loop.name for loop in loops_above(sch.func, f"{name}.init")]
    *written, lane = [loop for loop in around if loop not in outer]
    for loop in written:
        sch.unroll(loop)
    sch.vectorize(lane)


def _write_out(sch: Schedule, epilogue: Block, at: str, tile: Microkernel) -> None:
    """Compute the epilogue on each finished tile, row by row in vectors."""
    loops = sch.reverse_compute_at(epilogue.name, at)
    vector, lane = sch.split(loops[-1], [None, tile.lanes])
    for loop in (*loops[:-1], vector):
        sch.unroll(loop)
    sch.vectorize(lane)
