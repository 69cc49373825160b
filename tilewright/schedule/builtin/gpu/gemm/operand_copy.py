"""How threads copy tiles of the operands of a GEMM to shared memory, and in which order they lie.

What is K-major stays so where its rows are aligned: they are copied in vectors. Other K-major
operands are transposed on their way, a few words of K by a few rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tilewright.arith.expr import Expr, Load, Var, ceildiv
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Buffer, Iter
from tilewright.schedule.analysis.blocks import block_graph, flat_index, flat_stride, in_groups
from tilewright.schedule.analysis.gemm import (
    is_im2col,
    is_k_major,
    match_gemm,
    operand_load,
)
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import VECTOR_ELEMENTS
from tilewright.schedule.builtin.gpu.smem_copy import copy_by_threads
from tilewright.schedule.schedule import Schedule

# The words along K, and across it, that a warp transposes as it copies a K-major operand: those
# along K are a sector of global memory; rows of shared memory that are a vector longer
# (`finalize/gpu/pad_shared.py`) have all of them in different banks.
TRANSPOSE_TILE = (8, 4)


@dataclass(frozen=True)
class OperandCopy:
    """How a tile of an operand is copied: the order of its dimensions in shared memory.

    `k_major`: the operand is K-major in global memory. `vectors`: it is copied in vectors.
    `window`: where it is not, each word is compared with the borders of an image.
    """

    order: str
    k_major: bool
    vectors: bool
    window: bool = False


# Of rows, or columns, of whole vectors.
MN_MAJOR = OperandCopy("km", k_major=False, vectors=True)


def copy_of(
    block: Block, buffers: dict[str, Buffer], side: Literal["a", "b"], size: int
) -> OperandCopy:
    """How tiles of so many rows or columns of an operand are copied.

    A K-major operand of aligned rows stays so: threads read vectors along K.
    """
    gemm = match_gemm(block)
    assert gemm is not None
    axes, letter = (gemm.m, "m") if side == "a" else (gemm.n, "n")
    load = operand_load(gemm.a if side == "a" else gemm.b)
    along_k = is_k_major(block, buffers, side)
    # Windows are as near along both.
    k_major = along_k and flat_stride(load, buffers[load.buffer], axes[-1].name) != 1
    axis = (gemm.k if k_major else axes)[-1]
    padded = (
        axis.extent if k_major or len(axes) > 1 else simplify(ceildiv(axis.extent, size) * size)
    )
    vectors = is_vectorizable(load, buffers[load.buffer], axis, padded)
    order = f"{letter}k" if k_major and vectors else f"k{letter}"
    windows = is_im2col(load, axes, gemm.k) or load.mask is not None
    return OperandCopy(order, k_major, vectors, windows and not vectors)


def is_vectorizable(load: Load, buffer: Buffer, axis: Iter, padded: Expr) -> bool:
    """Whether an axis is contiguous, and all its vectors are aligned and full.

    The axis may be several in one, of which the last is a multiple of vectors. The last vector may
    end behind the axis, as far as `padded`, where the buffer has elements there. Vectors may be
    masked as a whole: by a mask that is the same for all elements, or where they do not cross the
    end of a dimension.
    """
    grouped = replace(axis, extent=padded)
    flat, extents = in_groups(flat_index(load, buffer), grouped, VECTOR_ELEMENTS)
    inner = Var(list(extents)[-1])
    start = simplify(flat - inner, extents)
    plain = inner.name not in free_vars(start) and _is_masked_whole(load, grouped)
    full = prove((axis.extent % VECTOR_ELEMENTS).eq(0)) or (
        prove((padded % VECTOR_ELEMENTS).eq(0))
        and (load.mask is None or axis.name not in free_vars(load.mask))
        and all(
            prove(i < size, {axis.name: padded}) or _is_alike(i, size, grouped)
            for i, size in zip(load.indices, buffer.shape, strict=True)
            if axis.name in free_vars(i)
        )
    )
    return plain and full and prove((start % VECTOR_ELEMENTS).eq(0), extents)


def _is_masked_whole(load: Load, axis: Iter) -> bool:
    """Whether a mask, if there is one, lets through all elements of a vector or none."""
    if load.mask is None:
        return True
    by_vectors, extents = in_groups(load.mask, axis, VECTOR_ELEMENTS)
    return list(extents)[-1] not in free_vars(by_vectors)


def _is_alike(index: Expr, size: Expr, axis: Iter) -> bool:
    """Whether an index is in bounds for all elements of a vector, or for none."""
    by_vectors, extents = in_groups(index, axis, VECTOR_ELEMENTS)
    inner = list(extents)[-1]
    return inner not in free_vars(by_vectors) or prove(by_vectors < size, extents)


def copy_operand(sch: Schedule, name: str, step: str, way: OperandCopy, threads: int) -> None:
    """Copy a tile of an operand to shared memory."""
    batch, outer, inner = sch.compute_at(name, step)
    sch.set_scope(block_graph(sch.func).block(name).writes[0].buffer, "shared")
    axes = [batch, outer, inner]
    if way.k_major and not way.vectors:
        deep, k = sch.split(outer, [None, TRANSPOSE_TILE[0]])
        wide, n = sch.split(inner, [None, TRANSPOSE_TILE[1]])
        axes = [batch, wide, deep, n, k]
        sch.reorder(*axes)
    copy_by_threads(sch, axes, threads, VECTOR_ELEMENTS if way.vectors else 0)
