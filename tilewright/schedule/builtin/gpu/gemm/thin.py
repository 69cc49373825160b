"""Products of few rows with a K-major matrix, whose every element is read once.

    grid: columns
      thread (warp, lane): s[m, n] += A[m, k] * B[n, k]        k = lane, lane + 32, ...
      allreduce (lane):    t[m, n] = sum of s[m, n]            shared
      thread (m, n):       result = epilogue(t)

A warp has some columns and all rows: a lane reads neighbours along K of each, in vectors where rows
are aligned, and a step has several of them in flight. K is rounded up to whole steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import as_int
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.analysis.gemm import is_k_major, match_gemm, operand_load
from tilewright.schedule.builtin.gpu.thread_per_element import bind_threads, own_loops
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The most rows, and the rows from which tensor cores are as fast where B's rows are aligned.
MAX_ROWS, TENSOR_CORE_ROWS = 8, 4
# The shortest K.
MIN_K = 256
# Warps of a block, and the fewest of an SM.
WARPS, MIN_WARPS_PER_SM = 4, 4
# Columns of a warp, from the most on.
COLUMNS = (4, 2, 1)
# The bytes that a lane has in flight, in no more vectors of a column than so many.
BYTES_IN_FLIGHT, MAX_VECTORS = 128, 16


@node
class ThinPlan:
    """The `columns` of a warp, and the vectors of `width` elements of a lane in each step."""

    columns: int
    width: int
    vectors: int


def plan_thin(block: Block, buffers: dict[str, Buffer], target: GpuTarget) -> ThinPlan | None:
    """The plan for a product of few rows, `None` if a block is none or is better off without."""
    gemm = match_gemm(block)
    if gemm is None or gemm.batch or len(gemm.k) > 1 or len(gemm.m) > 1 or len(gemm.n) > 1:
        return None
    m, n, k = (as_int(axes[0].extent) for axes in (gemm.m, gemm.n, gemm.k))
    loads = [operand_load(x) for x in (gemm.a, gemm.b)]
    along = is_k_major(block, buffers, "a") and is_k_major(block, buffers, "b")
    if not (m and n and k and along) or any(x.mask is not None for x in loads):
        return None
    if m > MAX_ROWS or k < MIN_K:
        return None
    elements = VECTOR_BYTES // loads[1].dtype.bytes
    aligned = k % elements == 0
    if aligned and loads[1].dtype.bits < 32 and m >= TENSOR_CORE_ROWS:
        return None
    warps = target.sm_count * MIN_WARPS_PER_SM
    columns = next((c for c in COLUMNS if n >= c * warps and n % c == 0), None)
    if columns is None:
        return None
    width = elements if aligned else 1
    vectors = BYTES_IN_FLIGHT // (columns * width * loads[1].dtype.bytes)
    return ThinPlan(columns, width, min(vectors, MAX_VECTORS))


def schedule_thin(sch: Schedule, name: str, plan: ThinPlan) -> None:
    """Schedule a product and its epilogue."""
    reader = block_graph(sch.func).blocks[-1].name
    step = WARP_SIZE * plan.width * plan.vectors
    block = block_graph(sch.func).block(name)
    gemm = match_gemm(block)
    assert gemm is not None
    sch.pad_reduction(name, reductions(block)[-1].name, step)
    copy = str(sch.cache_read(name, operand_load(gemm.b).buffer, "register"))
    *rows, columns = own_loops(sch, block_graph(sch.func).block(reader))
    grid, inner = sch.split(columns, [None, WARPS * plan.columns])
    sch.reorder(grid, *rows, inner)
    sch.compute_at(name, grid)
    *own_rows, across, depth = own_loops(sch, block_graph(sch.func).block(name))
    warp, column = sch.split(across, [WARPS, plan.columns])
    k0, *within, lane, element = sch.split(depth, [None, plan.vectors, WARP_SIZE, plan.width])
    sch.reorder(k0, warp, lane, *within, *own_rows, column, element)
    partial = str(sch.rfactor(name, lane))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    init = sch.decompose_reduction(partial, k0)
    _on_lanes(sch, [warp, lane], [*within, *own_rows, column, element])
    first, second, *others = own_loops(sch, block_graph(sch.func).block(init))
    _on_lanes(sch, [first, second], others)
    across, depth = sch.compute_at(copy, k0)
    warp, column = sch.split(across, [WARPS, plan.columns])
    *within, lane, element = sch.split(depth, [plan.vectors, WARP_SIZE, plan.width])
    sch.reorder(warp, lane, *within, column, element)
    _on_lanes(sch, [warp, lane], [*within, column])
    (sch.vectorize if plan.width > 1 else sch.unroll)(element)
    summed = block_graph(sch.func).block(name)
    sch.set_scope(summed.writes[0].buffer, "shared")
    own_warp, *others, lanes = own_loops(sch, summed)
    sch.bind(lanes, "allreduce")
    _on_lanes(sch, [own_warp], others)
    sch.bind(sch.fuse(*rows, inner), "thread")
    sch.bind(grid, "grid")


def _on_lanes(sch: Schedule, threads: Sequence[str], own: Sequence[str]) -> None:
    """Loops over warps and lanes, and those of each thread."""
    bind_threads(sch, threads)
    for loop in own:
        sch.unroll(loop)
