"""bf16 GEMMs by dot products of pairs (vdpbf16ps, bfdot), in register tiles.

    parallel (batch, panel of columns, tile of rows)
      C = 0                                                registers
      for k in steps of 2: C[rows, columns] += A[row, k : 2] . B[k : 2, columns]
      out[rows, columns] = epilogue(C)

The constant operand B gets the VNNI layout at compile time, in panels of one tile's columns.
"""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import BlockGraph, loop_of, op_count, typical_extent
from tilewright.schedule.analysis.gemm import GemmAxes, match_bf16_gemm, operand_load
from tilewright.schedule.analysis.tile_axes import TileAxes, tile_axes
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import choose_tile
from tilewright.schedule.builtin.cpu.gemm.vnni_layout import pack_vnni
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.intrin.cpu.bf16_dot import BF16_PAIRS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def match_bf16_dot_gemm(
    block: Block, graph: BlockGraph, constants: frozenset[str], target: CpuTarget
) -> GemmAxes | None:
    """The GEMM of a block that the target has dot products for, `None` if there is none."""
    gemm = match_bf16_gemm(block, constants) if pair_instruction(target) else None
    even = gemm is not None and (as_int(gemm.k[0].extent) or 1) % 2 == 0
    return gemm if even else None


def pair_instruction(target: CpuTarget) -> str | None:
    """The target's dot product of bf16 pairs, if it has one."""
    available = (
        name
        for name, row in BF16_PAIRS.items()
        if row.available(target.architecture, target.features)
    )
    return next(available, None)


def schedule_bf16_dot(
    sch: Schedule, block: Block, gemm: GemmAxes, epilogue: Block, target: CpuTarget
) -> None:
    """Schedule a GEMM and its epilogue."""
    instruction = pair_instruction(target)
    assert instruction is not None
    b, (k,) = operand_load(gemm.b), gemm.k
    axes = tile_axes(block, b)
    tile = _choose(sch, block.name, axes, k, target)
    pack_vnni(sch, b, k, axes.n, tile.nr)
    sch.pad(block.name, axes.n.name, tile.nr)
    if axes.m is not None:
        sch.pad(block.name, axes.m.name, tile.mr)
    panel, vector, lane = sch.split(loop_of(axes.n), [None, tile.vectors, tile.lanes])
    pairs, pair = sch.split(loop_of(k), [None, 2])
    outer, rows = [*(loop_of(it) for it in axes.batch), panel], []
    if axes.m is not None:
        row_tile, row = sch.split(loop_of(axes.m), [None, tile.mr])
        outer.append(row_tile)
        rows.append(row)
    sch.reorder(*outer, pairs, *rows, vector, lane, pair)
    fuse_epilogue(sch, epilogue.name, outer[-1], tile.lanes)
    sch.decompose_reduction(block.name, pairs)
    for loop in (*rows, vector):
        sch.unroll(loop)
    vectorize_init(sch, block.name, outer)
    sch.tensorize(sch.blockize(lane), instruction)
    sch.set_scope(block.writes[0].buffer, "register")
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, outer)


def _choose(sch: Schedule, name: str, axes: TileAxes, k: Iter, target: CpuTarget) -> Microkernel:
    problem = MicrokernelProblem(
        m=1 if axes.m is None else typical_extent(axes.m.extent),
        n=typical_extent(axes.n.extent),
        k=typical_extent(k.extent) // 2,
        bits=F32.bits,
        reuses_b=True,
    )
    return choose_tile(sch, name, problem, target)


def vectorize_init(sch: Schedule, name: str, outer: list[str]) -> None:
    """Zero the accumulators of a tile row by row, in vectors."""
    around = [loop.name for loop in loops_above(sch.func, f"{name}.init")]
    unroll_and_vectorize(sch, *(loop for loop in around if loop not in outer))
