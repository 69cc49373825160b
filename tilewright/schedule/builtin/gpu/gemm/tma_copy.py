"""Tiles of operands that TMA copies to shared memory: those of matrices with aligned rows.

Other tiles, as those of im2col matrices, are copied by threads (`smem_copy.py`).
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import TensorCoreTile
from tilewright.schedule.intrin.nvidia.tma import tma_load_name
from tilewright.schedule.intrin.padded import is_bounds
from tilewright.schedule.schedule import Schedule


def are_tma_loadable(
    sch: Schedule, tile: TensorCoreTile, name: str, k_major: tuple[bool, bool]
) -> bool:
    """Whether TMA can load all tiles of both operands."""
    sides = zip(("left", "right"), (tile.block_m, tile.block_n), k_major, strict=True)
    return all(
        _is_tma_loadable(
            sch, f"{name}.{side}", size, tile.block_k if major else size, tile.vector_elements
        )
        for side, size, major in sides
    )


def _is_tma_loadable(sch: Schedule, name: str, side: int, wide: int, vector: int) -> bool:
    """Whether tiles of an operand, `wide` columns each, are tiles of a matrix with aligned rows.

    They may reach beyond the matrix, see `schedule/intrin/padded.py`, but none may begin behind a
    row, as those of the last part of a K in parts: there the next row begins. Rows may be in blocks
    of full tiles, `side` of them each, see `schedule/builtin/gpu/weight_layout.py`.
    """
    graph = block_graph(sch.func)
    block = graph.block(name)
    assert isinstance(block.body, Store)
    load = block.body.value
    assert isinstance(load, Load)
    if len(load.indices) < 2 or not is_bounds(load, graph.buffers[load.buffer].shape):
        return False
    _, row, column = (Var(it.name) for it in block.iters)
    *rest, above, last = load.indices
    size, width = graph.buffers[load.buffer].shape[-2:]
    if prove((size % side).eq(0)) and rest and (rest[-1], above) == (row // size, row % size):
        rest, above = rest[:-1], row
    starts = [simplify(last - column), simplify(above - row)]
    inner = {row.name, column.name}
    if any(free_vars(e) & inner for e in (*rest, *starts)) or not prove((width % vector).eq(0)):
        return False
    most = starts[0] + (block.iters[-1].extent - wide)
    return prove(most < width, {it.name: it.extent for it in block.iters})


def tma_load(sch: Schedule, name: str, step: str) -> None:
    """Load a tile of an operand to shared memory by TMA."""
    one, rows, _ = sch.compute_at(name, step)
    sch.unroll(one)
    buffer = block_graph(sch.func).block(name).writes[0].buffer
    sch.set_scope(buffer, "shared")
    dtype = str(block_graph(sch.func).buffers[buffer].dtype)
    sides = [as_int(loop.extent) or 0 for loop in loops_above(sch.func, name)[-2:]]
    sch.tensorize(sch.blockize(rows), tma_load_name(dtype, *sides))
