"""Operands of a product that lie the wrong way, turned by a launch of their own.

    C[m, n] += A[m, k] * B[k, n]      →      A'[k, m] = A[m, k];  C[m, n] += A'[k, m] * B[k, n]

Threads multiply best, of f32, what lies along rows and columns; instructions on matrices, of
elements of 32 or 8 bits, what lies along the depth, unless tiles are whole. A launch that turns a
matrix moves it twice: next to the product that is little, unless there are few rows or columns for
each element.
"""

from __future__ import annotations

from math import inf

from tilewright.arith.expr import Load, Var, product
from tilewright.arith.simplify import prove, simplify
from tilewright.core.dtypes import F32, I8, U8
from tilewright.ir.loop.nodes import Buffer, Iter
from tilewright.schedule.analysis.blocks import block_graph, flat_stride, typical_extent
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, operand_load, size_of
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import (
    MIN_K,
    MIN_SIDE,
    VECTOR_ELEMENTS,
)
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import tensor_core_tile_of
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget

# The types whose products by threads, or by instructions, want operands one way.
PARTICULAR = (F32, I8, U8)
# How much of the time that a product takes at the machine's best turning may take: what it saves.
# Threads copy a right operand that lies otherwise word by word, a left one in pieces all the same.
LEFT, RIGHT, ALONG = 0.05, 0.25, 0.25


def transpose_operands(sch: Schedule, name: str, target: GpuTarget) -> None:
    """Let a product read operands that lie as it is computed best."""
    graph = block_graph(sch.func)
    gemm = match_gemm(graph.block(name))
    if gemm is None:
        return
    left, right = operand_load(gemm.a), operand_load(gemm.b)
    known = all(x.dtype in PARTICULAR for x in (left, right))
    if not known or left.dtype.bits != right.dtype.bits or left.buffer == right.buffer:
        return
    if tensor_core_tile_of(graph.block(name), graph.buffers, target) is not None:
        return
    deep = any(s.operands == str(left.dtype) for s in target.mma_shapes)
    orders: dict[str, list[int]] = {}
    for load, axes, most in ((left, gemm.m, LEFT), (right, gemm.n, RIGHT)):
        wanted, buffer = (gemm.k if deep else axes)[-1], graph.buffers[load.buffer]
        if flat_stride(load, buffer, wanted.name) != 1:
            worth = _share(gemm, buffer, target) < (ALONG if deep else most)
            orders[buffer.name] = _order(load, wanted, deep) if worth else []
    if deep and not all(orders.values()):
        return
    for operand, order in orders.items():
        if order:
            copy = str(sch.cache_read(name, operand, "global"))
            sch.transform_layout(copy, [(d, 0, 0) for d in order])


def _order(load: Load, wanted: Iter, deep: bool) -> list[int]:
    """The dimensions of an operand, the wanted axis last; none where it is no plain matrix."""
    names = [i.name if isinstance(i, Var) else "" for i in load.indices]
    plain = load.mask is None and "" not in names and wanted.name in names
    if not plain or not (deep or prove((wanted.extent % VECTOR_ELEMENTS).eq(0))):
        return []
    return sorted(range(len(names)), key=lambda d: names[d] == wanted.name)


def _share(gemm: GemmAxes, turned: Buffer, target: GpuTarget) -> float:
    """What turning takes of the time that the product takes by threads."""
    axes = (gemm.batch, gemm.m, gemm.n, gemm.k)
    batch, rows, columns, depth = map(size_of, axes)
    if depth < MIN_K or min(rows, columns) < MIN_SIDE:
        return inf
    size = typical_extent(simplify(product(turned.shape))) * turned.dtype.bytes
    taken = SIMT.launch + 2 * size / target.memory_rate
    return taken * target.f32_rate / (2 * batch * rows * columns * depth)
