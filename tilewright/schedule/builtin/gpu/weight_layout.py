"""Constants in an order in which neighbouring threads read neighbouring elements.

    w[o, c, r, q], summed over r, q, c      →      w[o, r, q, c]
    w[c, r, q], a sum for each c            →      w[r, q, c]

The caller packs them once, when the model is compiled. Products of more than a few rows want them
their way in any case, so that a tile is copied in pieces: instructions on matrices
(`gemm/tensor_core.py`) the sum innermost, threads (`gemm/simt.py`) their rows or columns. Products
of one row want the sum innermost: neighbours are added, and one launch has it all (`rowwise.py`),
whatever the columns are. Where rows or columns are no whole tiles, or pieces, there is room behind
the last: tiles at the edge are copied like all others.
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

# As many rows as make it worth a tile of a product on matrices.
TURNED_ROWS = 16
# The narrowest and the widest tile of `gemm/tensor_core.py`, and of `gemm/simt.py`.
MATRICES, THREADS = (64, 256), (32, 128)


def arrange_weights(sch: Schedule, name: str, constants: frozenset[str], target: GpuTarget) -> None:
    """Bring the constants that a sum reads into such an order."""
    matrices = {s.operands for s in target.mma_shapes}
    graph = block_graph(sch.func)
    block = graph.block(name)
    for load in reads_of(block):
        if load.buffer in constants:
            known = str(load.dtype) in matrices
            order = _order(block, load, graph.buffers[load.buffer], known)
            room = _room(block, load, known)
            if room or order != sorted(order):
                parts = [
                    [(d, room[d], 0), (d, room[d], 1)] if d in room else [(d, 0, 0)] for d in order
                ]
                sch.transform_layout(load.buffer, [p for two in parts for p in two])


def _room(block: Block, load: Load, matrices: bool) -> dict[int, int]:
    """The dimension of a matrix that is rounded up, and to a multiple of what.

    Instructions on matrices want whole tiles of its rows, threads whole pieces.
    """
    gemm = match_gemm(block)
    if gemm is None or min(size_of(gemm.m), size_of(gemm.n)) < TURNED_ROWS:
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
    """The axes that are wanted innermost by a product, in order, and another that does as well."""
    rows, columns = size_of(gemm.m), size_of(gemm.n)
    depth = [it.name for it in gemm.k]
    if rows == 1:
        return depth, []
    if rows < TURNED_ROWS or (not matrices and columns < TURNED_ROWS):
        return depth, [gemm.n[-1].name]
    own = gemm.n if uses(load, gemm.n[-1].name) else gemm.m
    return (depth if matrices else [own[-1].name]), []


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
