"""Layouts of constants, so that threads read them coalesced and in vectors.

    w[o, c, r, q], reduced over r, q, c     →      w[o, r, q, c]
    w[c, r, q], a reduction for each c      →      w[r, q, c]

They are packed once, when the model is compiled. A GEMM of more than a few rows needs its own
layout, so that tiles are copied in vectors: K-major on tensor cores (`gemm/tensor_core.py`), MN-
major on CUDA cores (`gemm/simt.py`). A GEMV needs K-major weights: `rowwise.py` reduces them in one
launch, whatever N is. Where M or N is no multiple of tiles, or of vectors, the constant is padded:
edge tiles are copied like all others.
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.schedule.analysis.blocks import (
    block_graph,
    flat_stride,
    reads_of,
    reductions,
    spatial,
    uses,
)
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, size_of
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import VECTOR_ELEMENTS
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# The fewest rows that are worth the layout of a tiled GEMM.
MIN_ROWS = 16
# The narrowest and the widest tile of `gemm/tensor_core.py`, and of `gemm/simt.py`.
MATRICES, THREADS = (64, 256), (32, 128)


def arrange_weights(sch: Schedule, name: str, constants: frozenset[str], target: GpuTarget) -> None:
    """Bring the constants that a reduction reads into the layout of its schedule."""
    matrices = {s.operands for s in target.mma_shapes}
    graph = block_graph(sch.func)
    block = graph.block(name)
    for load in reads_of(block):
        if load.buffer in constants:
            known = str(load.dtype) in matrices
            order = _order(block, load, graph.buffers[load.buffer], known)
            padding = _padding(block, load, known)
            if padding or order != sorted(order):
                parts = [
                    [(d, padding[d], 0), (d, padding[d], 1)] if d in padding else [(d, 0, 0)]
                    for d in order
                ]
                sch.transform_layout(load.buffer, [p for two in parts for p in two])


def _padding(block: Block, load: Load, matrices: bool) -> dict[int, int]:
    """The dimension of a matrix that is padded, and to a multiple of what.

    Tensor cores need full tiles of its rows, CUDA cores full vectors.
    """
    gemm = match_gemm(block)
    if gemm is None or min(size_of(gemm.m), size_of(gemm.n)) < MIN_ROWS:
        return {}
    least, most = MATRICES if matrices else THREADS
    whole = least if matrices else VECTOR_ELEMENTS
    for axes in (gemm.m, gemm.n):
        size = size_of(axes)
        if len(axes) == 1 and len(load.indices) == 2 and size % whole:
            own = [d for d, i in enumerate(load.indices) if i is Var(axes[0].name)]
            return {d: min(-(-size // least) * least, most) for d in own}
    return {}


def _wanted(gemm: GemmAxes, load: Load, matrices: bool) -> tuple[list[str], list[str]]:
    """The axes that a GEMM needs innermost, in order, and another that does as well."""
    rows, columns = size_of(gemm.m), size_of(gemm.n)
    k = [it.name for it in gemm.k]
    if rows == 1:
        return k, []
    if rows < MIN_ROWS or (not matrices and columns < MIN_ROWS):
        return k, [gemm.n[-1].name]
    own = gemm.n if uses(load, gemm.n[-1].name) else gemm.m
    return (k if matrices else [own[-1].name]), []


def _order(block: Block, load: Load, buffer: Buffer, matrices: bool) -> list[int]:
    """The dimensions of a constant, those that should be innermost last."""
    gemm = match_gemm(block, gemv=True)
    if gemm is not None and spatial(block)[-1] not in gemm.batch:
        inner, other = _wanted(gemm, load, matrices)
    else:
        inner, other = [it.name for it in (*reductions(block), *spatial(block)[-1:])], []
    names = [i.name if isinstance(i, Var) else "" for i in load.indices]
    near = any(flat_stride(load, buffer, axis) == 1 for axis in (*inner[-1:], *other))
    if near or any(axis not in names for axis in inner):
        return list(range(len(names)))
    places = {axis: place for place, axis in enumerate(inner)}
    return sorted(range(len(names)), key=lambda d: places.get(names[d], -1))
