"""Operands of a GEMM in the wrong layout, transposed by a launch of their own.

    C[m, n] += A[m, k] * B[k, n]      →      A'[k, m] = A[m, k];  C[m, n] += A'[k, m] * B[k, n]

CUDA cores are fastest with MN-major operands of f32, in vectors: transposed rows are whole vectors,
with room behind them. Tensor cores take operands of 32 or 8 bits K-major only, unless tiles are
full. A transpose moves a matrix twice: little beside the GEMM, unless M or N is small. Which pay
is estimated with the tiles that there are with and without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf

from tilewright.arith.expr import Load, Var, product
from tilewright.arith.simplify import prove, simplify
from tilewright.core.dtypes import F32, I8, U8
from tilewright.ir.loop.nodes import Block, Buffer, Iter
from tilewright.schedule.analysis.blocks import block_graph, flat_stride, typical_extent
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, operand_load, size_of
from tilewright.schedule.builtin.gpu.gemm.select_simt_tile import simt_tiles_of
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import tensor_core_tile_of
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import (
    MIN_K,
    MIN_SIDE,
    VECTOR_ELEMENTS,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget

# The types whose GEMMs need operands in one layout.
DTYPES = (F32, I8, U8)
Part = tuple[int, int, int]
"""A dimension of a layout, see `schedule/primitives/transform_layout.py`."""
# The most time that a transpose for tensor cores may take, as a part of the GEMM at peak rate on
# CUDA cores: what it saves.
MAX_SHARE = 0.25


def transpose_operands(sch: Schedule, name: str, target: GpuTarget) -> None:
    """Transpose the operands of a GEMM that are not in its best layout."""
    graph = block_graph(sch.func)
    block = graph.block(name)
    gemm = match_gemm(block)
    if gemm is None:
        return
    left, right = operand_load(gemm.a), operand_load(gemm.b)
    known = all(x.dtype in DTYPES for x in (left, right))
    if not known or left.dtype.bits != right.dtype.bits or left.buffer == right.buffer:
        return
    if tensor_core_tile_of(block, graph.buffers, target) is not None:
        return
    k_major = any(s.operands == str(left.dtype) for s in target.mma_shapes)
    orders: dict[str, list[Part]] = {}
    for load, axes in ((left, gemm.m), (right, gemm.n)):
        wanted, buffer = (gemm.k if k_major else axes)[-1], graph.buffers[load.buffer]
        if flat_stride(load, buffer, wanted.name) != 1:
            orders[buffer.name] = _order(load, wanted, k_major)
    if k_major and not all(
        order and _share(gemm, graph.buffers[name], target) < MAX_SHARE
        for name, order in orders.items()
    ):
        return
    possible = [name for name, order in orders.items() if order]
    for operand in possible if k_major else _worth(block, graph.buffers, possible, target):
        asked = f"{name}.transpose.{operand}"
        if k_major or sch.choose(asked, True, lambda: (False, True)):
            copy = str(sch.cache_read(name, operand, "global"))
            sch.transform_layout(copy, orders[operand])


def _worth(
    block: Block, buffers: dict[str, Buffer], operands: Sequence[str], target: GpuTarget
) -> tuple[str, ...]:
    """Those of some operands that CUDA cores are fastest with transposed."""

    def seconds(transposed: Sequence[str]) -> float:
        found = simt_tiles_of(block, buffers, target, transposed)
        if found is None:
            return 0.0
        before = sum(_seconds(buffers[operand]) for operand in transposed)
        return before + found.seconds(found.default)

    sets = (x for n in range(len(operands) + 1) for x in combinations(operands, n))
    return min(sets, key=seconds)


def _order(load: Load, wanted: Iter, k_major: bool) -> list[Part]:
    """The dimensions of an operand, the wanted axis last; none where it is no plain matrix.

    Rows that are no whole vectors get room behind them.
    """
    names = [i.name if isinstance(i, Var) else "" for i in load.indices]
    if load.mask is not None or "" in names or wanted.name not in names:
        return []
    last = names.index(wanted.name)
    others = [(d, 0, 0) for d in range(len(names)) if d != last]
    if k_major or prove((wanted.extent % VECTOR_ELEMENTS).eq(0)):
        return [*others, (last, 0, 0)]
    return [*others, (last, VECTOR_ELEMENTS, 0), (last, VECTOR_ELEMENTS, 1)]


def _share(gemm: GemmAxes, operand: Buffer, target: GpuTarget) -> float:
    """The time of a transpose, as a part of the time of the GEMM at peak rate."""
    axes = (gemm.batch, gemm.m, gemm.n, gemm.k)
    batch, m, n, k = map(size_of, axes)
    if k < MIN_K or min(m, n) < MIN_SIDE:
        return inf
    taken = SIMT.launch + 2 * _bytes(operand) / target.memory_rate
    return taken * target.f32_rate / (2 * batch * m * n * k)


def _seconds(operand: Buffer) -> float:
    """The time of a transpose before a GEMM on CUDA cores."""
    return SIMT.transpose_launch + 2 * _bytes(operand) / SIMT.transpose_rate


def _bytes(operand: Buffer) -> int:
    return typical_extent(simplify(product(operand.shape))) * operand.dtype.bytes
