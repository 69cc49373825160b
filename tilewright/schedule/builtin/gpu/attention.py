"""Attention on tensor cores: a thread block has some rows of queries.

    grid: (batch, row tile)
      thread (y, row, lane): a = queries                 fragments
      thread (y, row, lane): m, l, o = -inf, 0, 0        registers
      for tiles of keys, software-pipelined
        threads: kt, vt = keys, values                   shared, 16 bytes at a time
        warp (y): s = a * kt                             fragments
        thread (y, row, lane): masks, maxima, weights    the elements of each lane
        warp (y): o += w * vt                            weights stay in registers
      thread (y, row, lane): result = o / sum

Scores never leave the registers. The loops, with the lanes of each row, are those of
`ops/attention/tiled_loops.py`. Where tiles of keys and values are full, and a block has two
warpgroups, producer warps copy them, and the kernel is persistent: see
`finalize/gpu/overlapped_attention.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.arith.expr import Load, Var, as_int, const
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import (
    MIN_BLOCKS_PER_SM,
    PERSISTENT,
    PIPELINE_STAGES,
    WARP_SPECIALIZED,
)
from tilewright.ir.loop.nodes import Block, For, Func, Store
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.ir.loop.walk import blocks, loops, loops_above
from tilewright.ops.attention.tiled_loops import LANES, PAIR
from tilewright.schedule.analysis.blocks import block_graph, loop_of, reads_of, reductions
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, operand_load
from tilewright.schedule.builtin.cpu.attention import tasks_loop
from tilewright.schedule.builtin.gpu.attention_copies import (
    is_tma_loadable,
    loop_extent,
    tma_load,
)
from tilewright.schedule.builtin.gpu.attention_order import longest_first
from tilewright.schedule.builtin.gpu.attention_split import combine_splits
from tilewright.schedule.builtin.gpu.smem_copy import copy_by_threads
from tilewright.schedule.builtin.gpu.thread_per_element import own_loops
from tilewright.schedule.intrin.nvidia import fragment_shuffle, wgmma
from tilewright.schedule.intrin.nvidia.mma import MMA_K, MMA_M, VECTOR_ELEMENTS, mma_names
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Pipeline stages of keys and values: more with split-KV, and where they cover a whole mainloop of
# at most so many bytes; the most that a search considers.
STAGES, MORE_STAGES, MAX_STAGES = 2, 3, 4
MAX_PROLOGUE_BYTES = 48 << 10
# The rows of wgmma, and the consumer warpgroups and pipeline stages with warp specialization.
WARPGROUP_M = 64
CONSUMER_GROUPS = 2
WARP_SPECIALIZED_STAGES = 2
REGISTER_BITS = 32
# The queries that threads have registers for without roles: 128 rows of 128.
MAX_HELD_QUERIES = 32 << 10
# The distance of the rows that a lane has of a fragment.
ROW_STEP = 8


@dataclass(frozen=True)
class _Plan:
    """The blocks of attention by name: GEMMs, and the shared-memory copies that they read."""

    gemms: frozenset[str]
    copies: frozenset[str]
    # Copies of MN-major operands.
    mn_major: frozenset[str]
    threads: int
    # Whether warpgroups multiply, or single warps, and K of their instruction.
    wgmma: bool
    mma_k: int
    # The bytes of one pipeline stage, and of a tile of queries.
    stage_bytes: int
    query_bytes: int
    # What fills the tile of queries.
    queries: frozenset[str]
    # Fragments that all iterations of the mainloop read, see `schedule/intrin/nvidia/wgmma.py`.
    loop_invariant_a: frozenset[str]
    # Whether producer warps copy full tiles.
    warp_specialized: bool
    # Results that lanes shuffle before they are stored.
    shuffled: frozenset[str]


def tiled_tasks(func: Func) -> For | None:
    """The loop over blocks of rows that are distributed over lanes, `None` if there is none."""
    tasks = tasks_loop(func)
    return tasks if tasks is not None and any(map(_reduces_lanes, blocks(tasks))) else None


def _reduces_lanes(block: Block) -> bool:
    """Whether a block reduces over lanes, the last axis of what it reads."""
    last = [load.indices[-1] for load in reads_of(block)]
    axes = [it for it in reductions(block) if as_int(it.extent) == LANES]
    return bool(axes) and last == [Var(axes[0].name)]


def schedule_tiled_attention(sch: Schedule, tasks: For, target: GpuTarget) -> None:
    """Schedule the nests in the loop `tasks`."""
    inside = list(blocks(tasks))
    behind = [b for b in blocks(sch.func.body) if b.name not in {b.name for b in inside}]
    # Buffers in global memory: results, and partial ones.
    in_memory = {*block_graph(sch.func).outputs, *(x.buffer for b in behind for x in reads_of(b))}
    mainloop = next(loop for loop in loops(tasks.body) if len(list(blocks(loop))) > 1)
    plan = _plan(sch, inside, _loop_invariant(inside, mainloop), target)
    producers = _can_warp_specialize(sch, inside, plan, target)
    unlike = (False,) if plan.query_bytes <= MAX_HELD_QUERIES else ()
    if producers and sch.choose("warp_specialized", True, lambda: (*unlike, True)):
        # Nothing branches between the products of an iteration.
        plan = replace(
            plan,
            warp_specialized=True,
            loop_invariant_a=frozenset(),
            copies=plan.copies | plan.queries,
        )
    outer = [loop.name for loop in loops_above(sch.func, inside[0].name)]
    outer = outer[: outer.index(tasks.name) + 1]
    for block in inside:
        if block.name in plan.gemms:
            _multiply(sch, block, plan)
        elif block.name in plan.copies:
            _copy_tile(sch, block, plan)
        elif _reduces_lanes(block):
            _reduce_lanes(sch, block)
        elif block.writes[0].buffer in plan.shuffled:
            _shuffle_results(sch, block)
        else:
            _distribute(sch, block, in_memory, plan)
    if plan.warp_specialized:
        outer = longest_first(sch, outer, mainloop, target)
    grid = _bind_grid(sch, outer)
    stages = MORE_STAGES if behind or _is_short(mainloop, plan) else STAGES
    if plan.warp_specialized:
        stages = WARP_SPECIALIZED_STAGES
        _specialize_warps(sch, grid, mainloop, target)
    stages = min(stages, target.max_pipeline_stages or stages)
    stages = _choose_stages(sch, stages, plan, target)
    sch.annotate(mainloop.name, PIPELINE_STAGES.key, stages)
    if behind:
        combine_splits(sch, behind)


def _specialize_warps(sch: Schedule, grid: str, mainloop: For, target: GpuTarget) -> None:
    """One persistent block on each SM, some warps of which only copy."""
    sch.annotate(grid, PERSISTENT.key, target.sm_count)
    sch.annotate(grid, MIN_BLOCKS_PER_SM.key, 1)
    sch.annotate(mainloop.name, WARP_SPECIALIZED.key, 1)


def _choose_stages(sch: Schedule, default: int, plan: _Plan, target: GpuTarget) -> int:
    """The pipeline stages of keys and values, beside which queries must fit."""
    fitting = max(1, target.max_shared_per_block // max(1, plan.stage_bytes)) - 1
    most = max(default, min(fitting, target.max_pipeline_stages or MAX_STAGES))
    return sch.choose("stages", default, lambda: range(2, most + 1))


def _is_short(mainloop: For, plan: _Plan) -> bool:
    """Whether the prologue of the pipeline can copy all tiles of a mainloop."""
    tiles = as_int(mainloop.extent)
    return tiles == MORE_STAGES - 1 and plan.stage_bytes * MORE_STAGES <= MAX_PROLOGUE_BYTES


def _loop_invariant(inside: list[Block], mainloop: For) -> frozenset[str]:
    """What is computed before the mainloop, if only some of its iterations are masked."""
    steps = list(blocks(mainloop))
    counted = {v for b in steps for it in b.iters for v in free_vars(it.binding)}
    if all(loop.name in counted for loop in loops(mainloop.body)):
        return frozenset()
    own = {b.name for b in steps}
    return frozenset(b.writes[0].buffer for b in inside if b.name not in own)


def _can_warp_specialize(
    sch: Schedule, inside: list[Block], plan: _Plan, target: GpuTarget
) -> bool:
    """Whether producer warps can load all operands of the mainloop by TMA, tile by tile."""
    fits = plan.stage_bytes * WARP_SPECIALIZED_STAGES + plan.query_bytes
    groups = plan.threads == CONSUMER_GROUPS * WARPGROUP_M // MMA_M * WARP_SIZE
    copies = [b for b in inside if b.name in plan.copies | plan.queries]
    roles = plan.wgmma and all(map(target.has, ("tma", "mbarrier", "setmaxnreg")))
    loadable = all(is_tma_loadable(sch, b) for b in copies)
    return roles and groups and fits < target.max_shared_per_block and loadable


def _bind_grid(sch: Schedule, outer: list[str]) -> str:
    grid = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    sch.bind(grid, "grid")
    return grid


def _plan(
    sch: Schedule, inside: list[Block], invariant: frozenset[str], target: GpuTarget
) -> _Plan:
    products = [b for b in inside if _gemm_of(b) is not None]
    found = [r for b in products if (r := _gemm_of(b)) is not None]
    read = {operand_load(r.b).buffer for r in found}
    mn_major = frozenset(
        x.buffer
        for r in found
        for x in (operand_load(r.b),)
        if x.indices[-1] is not Var(r.k[-1].name)
    )
    params = {p.name for p in sch.func.params}
    copies = [
        b
        for b in inside
        if b.writes[0].buffer in read and {r.buffer for r in reads_of(b)} <= params
    ]
    shapes = [[loop_extent(sch, loop) for loop in own_loops(sch, b)] for b in products]
    dtype = str(operand_load(found[0].b).dtype)
    mma = target.warp_mma(dtype)
    assert mma is not None  # `passes.attention.gpu_attention.py` looks
    use_wgmma = target.warpgroup_mma(dtype) is not None and all(map(_fits_wgmma, shapes))
    if use_wgmma:
        use_wgmma = sch.choose("wgmma", True, lambda: (False, True))
    threads = shapes[0][0] // MMA_M * WARP_SIZE
    # ptxas reuses the registers only where the fragments of both products have as many.
    kept = invariant if len({k for *_, k in shapes}) == 1 else frozenset()
    product_names, copy_names = (frozenset(b.name for b in x) for x in (products, copies))
    # Copies that results are copied from.
    outs = [b for b in inside if b.writes[0].buffer in block_graph(sch.func).outputs]
    shuffled = frozenset(x for x in map(_copy_of, outs) if x in set(map(_written_copy, inside)))
    buffers = block_graph(sch.func).buffers
    sizes = (
        prod(loop_extent(sch, loop) for loop in own_loops(sch, b))
        * buffers[b.writes[0].buffer].dtype.bytes
        for b in copies
    )
    left = operand_load(found[0].a)
    rows, _, deep = shapes[0]
    queries = frozenset(b.name for b in inside if b.writes[0].buffer == left.buffer)
    return _Plan(
        product_names,
        copy_names,
        mn_major,
        threads,
        use_wgmma,
        mma.k,
        sum(sizes),
        rows * deep * left.dtype.bytes,
        queries,
        kept,
        warp_specialized=False,
        shuffled=shuffled,
    )


def _copy_of(block: Block) -> str:
    """The buffer that a block only copies, "" if it computes."""
    value = block.body.value if isinstance(block.body, Store) else None
    return value.buffer if isinstance(value, Load) and value.mask is None else ""


def _written_copy(block: Block) -> str:
    """The buffer that a block copies something to, "" if it computes."""
    return block.writes[0].buffer if _copy_of(block) else ""


def _fits_wgmma(shape: list[int]) -> bool:
    """Whether wgmma has a GEMM of this M, N and K."""
    m, n, k = shape
    return m % WARPGROUP_M == 0 and k % wgmma.WGMMA_K == 0 and n in wgmma.WGMMA_N


def _gemm_of(block: Block) -> GemmAxes | None:
    """The GEMM of a block, also of one that accumulates onto its result."""
    if block.init is None and isinstance(block.body, Store) and reductions(block):
        start = replace(block.body, value=const(0, block.body.value.dtype))
        return match_gemm(replace(block, init=start))
    return match_gemm(block)


def _multiply(sch: Schedule, block: Block, plan: _Plan) -> None:
    """A GEMM: a warp has sixteen rows and all columns."""
    name = block.name
    rows, columns, depth = own_loops(sch, block)
    found = _gemm_of(block)
    assert found is not None
    left, right = operand_load(found.a), operand_load(found.b)
    right_order = "t" if right.indices[-1] is Var(found.k[-1].name) else "n"
    in_registers = left.buffer not in plan.copies
    dtype, wide = str(left.dtype), loop_extent(sch, columns)
    if plan.wgmma:
        source = "rs_copy" if left.buffer in plan.loop_invariant_a else "rs"
        left_order = source if in_registers else "n"
        zero, add = wgmma.wgmma_names(dtype, wide, right_order, left_order)
    else:
        left_order = "r" if in_registers else "n"
        zero, add = mma_names(dtype, MMA_M, wide, left_order + right_order, plan.mma_k)
    y, m = sch.split(rows, [None, MMA_M])
    k, step = sch.split(depth, [None, wgmma.WGMMA_K if plan.wgmma else MMA_K])
    sch.reorder(y, k, m, columns, step)
    sch.bind(y, "warp")
    sch.unroll(k)
    if block.init is not None:
        init = sch.decompose_reduction(name, k)
        sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.set_scope(block.writes[0].buffer, "fragment")
    sch.tensorize(sch.blockize(m), add)


def _copy_tile(sch: Schedule, block: Block, plan: _Plan) -> None:
    """Copy a tile of an operand to shared memory."""
    buffer = block.writes[0].buffer
    sch.set_scope(buffer, "shared")
    if plan.warp_specialized:
        tma_load(sch, block, k_major=buffer not in plan.mn_major)
        return
    copy_by_threads(sch, own_loops(sch, block), plan.threads, VECTOR_ELEMENTS)


def _rows_of(sch: Schedule, rows: str) -> tuple[str, str, str]:
    """The loops over warps, over the rows of a warp, and over the rows of a lane."""
    y, half, row = sch.split(rows, [None, MMA_M // ROW_STEP, ROW_STEP])
    return y, row, half


def _reduce_lanes(sch: Schedule, block: Block) -> None:
    """An all-reduce over the lanes of a row."""
    rows, lane = own_loops(sch, block)
    y, row, half = _rows_of(sch, rows)
    sch.reorder(y, row, half, lane)
    for loop in (y, row):
        sch.bind(loop, "thread")
    sch.bind(lane, "allreduce")
    sch.unroll(half)
    sch.set_scope(block.writes[0].buffer, "register")


def _shuffle_results(sch: Schedule, block: Block) -> None:
    """Shuffle results between the lanes of a row, so that each has contiguous ones."""
    rows, columns = own_loops(sch, block)
    buffer = block_graph(sch.func).buffers[block.writes[0].buffer]
    y, row = sch.split(rows, [None, MMA_M])
    sch.bind(y, "warp")
    sch.set_scope(buffer.name, "fragment")
    name = fragment_shuffle.packed_transpose_name(
        str(buffer.dtype), MMA_M, loop_extent(sch, columns)
    )
    sch.tensorize(sch.blockize(row), name)


def _distribute(sch: Schedule, block: Block, in_memory: set[str], plan: _Plan) -> None:
    """Elementwise blocks: on rows, by every lane, or on the elements that a lane has."""
    bound = {v for it in block.iters for v in free_vars(it.binding)}
    # A loop that binds no iterator is a condition.
    rows, columns, *terms = (loop for loop in own_loops(sch, block) if loop in bound)
    y, row, half = _rows_of(sch, rows)
    inner, lane = [half, *terms], columns
    elements = not terms and loop_extent(sch, columns) != LANES
    if elements:
        shuffled = {r.buffer for r in block.reads} & plan.shuffled
        wide = fragment_shuffle.QUAD_ELEMENTS if shuffled else PAIR
        group, lane, pair = sch.split(columns, [None, LANES, wide])
        inner += [group, pair]
    sch.reorder(y, row, lane, *inner)
    for loop in (y, row, lane):
        sch.bind(loop, "thread")
    if reductions(block):
        sch.decompose_reduction(block.name, loop_of(reductions(block)[0]))
    for loop in inner[:-1]:
        sch.unroll(loop)
    # Elements in memory, and narrow ones, move in pairs.
    graph = block_graph(sch.func)
    buffer = graph.buffers[block.writes[0].buffer]
    params = {p.name for p in sch.func.params} | in_memory
    pairs = (
        buffer.dtype.bits < REGISTER_BITS
        or {r.buffer for r in (*block.reads, *block.writes)} & params
    )
    (sch.vectorize if elements and pairs else sch.unroll)(inner[-1])
    if buffer.name not in in_memory:
        sch.set_scope(buffer.name, "fragment" if elements else "register")
