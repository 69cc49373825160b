"""TMA copies of the operands of attention.

for j, d in serial(128, 128) { kt[j, d] = x1[b, j + 128 * k, d ? j + 128 * k < 1000 & d < 96] }
  →
tile copy.padded kt[...] <- x1[b, 128 * k : 128, 0 : 128]
  using "tma_load_f16_128x128_of_several"
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Store
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.thread_per_element import own_loops
from tilewright.schedule.intrin.nvidia import wgmma
from tilewright.schedule.intrin.nvidia.mma import VECTOR_ELEMENTS
from tilewright.schedule.intrin.nvidia.tma import tma_load_name
from tilewright.schedule.intrin.padded import is_bounds
from tilewright.schedule.schedule import Schedule


def loop_extent(sch: Schedule, loop: str) -> int:
    """The iterations of a loop, which are known."""
    found = as_int(find_loop(sch.func, loop).extent)
    assert found is not None
    return found


def is_tma_loadable(sch: Schedule, block: Block) -> bool:
    """Whether a block copies tiles of a matrix in memory with aligned rows."""
    assert isinstance(block.body, Store)
    load = block.body.value
    if not isinstance(load, Load) or len(block.iters) < 2:
        return False
    row, column = (Var(it.name) for it in block.iters[-2:])
    *rest, last = load.indices
    shape = block_graph(sch.func).buffers[load.buffer].shape
    (moving,) = [i for i in rest if row.name in free_vars(i)] or [column]
    within = {row.name, column.name}
    others = [simplify(moving - row), *(i for i in rest if i is not moving)]
    given = load.buffer in {p.name for p in sch.func.params}
    whole = given and last is column and not any(free_vars(i) & within for i in others)
    aligned = prove((shape[-1] % VECTOR_ELEMENTS).eq(0))
    return whole and aligned and is_bounds(load, shape, within)


def tma_load(sch: Schedule, block: Block, k_major: bool) -> None:
    """Load a tile by TMA; of an MN-major operand, the rows of one instruction at a time.

    A tile that reaches beyond its matrix is one of several, so that no other's rows are read.
    """
    rows, columns = own_loops(sch, block)
    assert isinstance(block.body, Store)
    assert isinstance(block.body.value, Load)
    bounded = block.body.value.mask is not None
    dtype = str(block.body.value.dtype)
    high, wide = loop_extent(sch, rows), loop_extent(sch, columns)
    if not k_major:
        part, rows = sch.split(rows, [None, wgmma.WGMMA_K])
        sch.unroll(part)
        high = wgmma.WGMMA_K
    sch.tensorize(sch.blockize(rows), tma_load_name(dtype, high, wide, of_several=bounded))
