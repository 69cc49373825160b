"""Operands of a GEMM in the wrong layout, transposed by a launch of their own.

    C[m, n] += A[m, k] * B[k, n]      →      A'[k, m] = A[m, k];  C[m, n] += A'[k, m] * B[k, n]

CUDA cores are fastest with MN-major operands of f32, in vectors: transposed rows are whole vectors,
with room behind them. Tensor cores take operands of 32 or 8 bits K-major only, unless tiles are
full. A transpose moves a matrix twice: little beside the GEMM, unless M or N is small.
"""

from __future__ import annotations

from math import inf

from tilewright.arith.expr import Load, Var, product
from tilewright.arith.simplify import prove, simplify
from tilewright.core.dtypes import F32, I8, U8
from tilewright.ir.loop.nodes import Buffer, Iter
from tilewright.schedule.analysis.blocks import block_graph, flat_stride, typical_extent
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, operand_load, size_of
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
# The most time that a transpose may take, as a part of the GEMM at peak rate: what it saves. CUDA
# cores copy K-major operands in vectors, and word by word where their rows are not aligned.
MAX_SHARE_A, MAX_SHARE_B, MAX_SHARE_WORDS, MAX_SHARE_TENSOR_CORE = 0.05, 0.25, 0.4, 0.25


def transpose_operands(sch: Schedule, name: str, target: GpuTarget) -> None:
    """Transpose the operands of a GEMM that are not in its best layout."""
    graph = block_graph(sch.func)
    gemm = match_gemm(graph.block(name))
    if gemm is None:
        return
    left, right = operand_load(gemm.a), operand_load(gemm.b)
    known = all(x.dtype in DTYPES for x in (left, right))
    if not known or left.dtype.bits != right.dtype.bits or left.buffer == right.buffer:
        return
    if tensor_core_tile_of(graph.block(name), graph.buffers, target) is not None:
        return
    k_major = any(s.operands == str(left.dtype) for s in target.mma_shapes)
    orders: dict[str, list[Part]] = {}
    for load, axes, share in ((left, gemm.m, MAX_SHARE_A), (right, gemm.n, MAX_SHARE_B)):
        wanted, buffer = (gemm.k if k_major else axes)[-1], graph.buffers[load.buffer]
        if flat_stride(load, buffer, wanted.name) != 1:
            most = share if prove((gemm.k[-1].extent % VECTOR_ELEMENTS).eq(0)) else MAX_SHARE_WORDS
            most = MAX_SHARE_TENSOR_CORE if k_major else most
            worth = _share(gemm, buffer, target) < most
            orders[buffer.name] = _order(load, wanted, k_major) if worth else []
    if k_major and not all(orders.values()):
        return
    for operand, order in orders.items():
        asked = f"{name}.transpose.{operand}"
        if order and (k_major or sch.choose(asked, True, lambda: (False, True))):
            copy = str(sch.cache_read(name, operand, "global"))
            sch.transform_layout(copy, order)


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
    size = typical_extent(simplify(product(operand.shape))) * operand.dtype.bytes
    taken = SIMT.launch + 2 * size / target.memory_rate
    return taken * target.f32_rate / (2 * batch * m * n * k)
