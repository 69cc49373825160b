"""The bf16 GEMMs of attention on AMX: both operands are computed.

    for panel of columns
      C = 0                                               tile registers
      for k in steps of 32: C += A[rows, k] * B[k, columns]
      scores = C                                          read by the next nest

A task computes one block of rows, and `A` and `B` are its own buffers: `B` has the VNNI layout, `A`
is row-major.
"""

from __future__ import annotations

from tilewright.arith.expr import Load, as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import is_copy, loop_of, reductions, spatial
from tilewright.schedule.analysis.gemm import is_bf16, match_gemm, operand_load
from tilewright.schedule.builtin.cpu.gemm.vnni_layout import pack_vnni
from tilewright.schedule.intrin.cpu.amx import COLUMNS, DEPTH, ROWS, amx_names
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def is_amx_gemm(block: Block, after: Block, target: CpuTarget) -> bool:
    """Whether a block is a bf16 GEMM whose result is copied out, and the target has AMX."""
    row = INTRINSICS[amx_names(2 * ROWS)[1]]
    if not row.available(target.architecture, target.features) or not is_copy(after):
        return False
    sizes = as_int(spatial(block)[-1].extent) or 1, as_int(reductions(block)[-1].extent) or 1
    whole = sizes[0] % COLUMNS == 0 and sizes[1] % DEPTH == 0
    gemm = match_gemm(block, gemv=True)
    return whole and gemm is not None and len(gemm.k) == 1 and is_bf16(gemm)


def schedule_amx_gemm(sch: Schedule, block: Block, after: Block, shared: set[str]) -> Load:
    """Schedule a GEMM and the copy of its result; the operand B, which is laid out in panels."""
    column, depth = spatial(block)[-1], reductions(block)[0]
    row = next(it for it in spatial(block)[:-1] if free_vars(it.binding) - shared)
    (row_loop,) = free_vars(row.binding) - shared
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    b = operand_load(gemm.b)
    pack_vnni(sch, b, depth, column, COLUMNS)
    part, lane = sch.split(loop_of(column), [None, COLUMNS])
    steps = sch.split(loop_of(depth), [None, DEPTH // 2, 2])
    sch.reorder(part, steps[0], row_loop, lane, *steps[1:])
    sch.reverse_compute_at(after.name, part)
    sch.decompose_reduction(block.name, steps[0])
    zero, step, store = amx_names(2 * ROWS)
    sch.tensorize(sch.blockize(_second_innermost(sch, f"{block.name}.init")), zero)
    sch.tensorize(sch.blockize(row_loop), step)
    sch.tensorize(sch.blockize(_second_innermost(sch, after.name)), store)
    sch.set_scope(block.writes[0].buffer, "local")
    return b


def _second_innermost(sch: Schedule, block: str) -> str:
    return loops_above(sch.func, block)[-2].name
