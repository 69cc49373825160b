"""Which built-in schedule a function gets on a GPU, decided by its structure; see `rules.py`."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.arith.expr import Const, Expr, Load, Select
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block, Func
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    is_copy,
    is_simple,
    reads_of,
    reductions,
    spatial,
    uses,
    value_of,
)
from tilewright.schedule.analysis.gemm import match_gemm, size_of
from tilewright.schedule.builtin.cpu.rowwise import row_axes
from tilewright.schedule.builtin.gpu.attention import schedule_tiled_attention, tiled_tasks
from tilewright.schedule.builtin.gpu.attention_tile import choose_tile
from tilewright.schedule.builtin.gpu.column_reduction import plan_columns, schedule_columns
from tilewright.schedule.builtin.gpu.depthwise import choose_stencil, schedule_depthwise, staged
from tilewright.schedule.builtin.gpu.gemm.select_simt_tile import (
    SimtTiles,
    prefers_rowwise,
    simt_tiles_of,
)
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import (
    TensorCoreTiles,
    tensor_core_tiles_of,
)
from tilewright.schedule.builtin.gpu.gemm.simt import schedule_simt
from tilewright.schedule.builtin.gpu.gemm.tensor_core import schedule_tensor_core
from tilewright.schedule.builtin.gpu.gemm.thin import schedule_thin
from tilewright.schedule.builtin.gpu.gemm.thin_plan import (
    ThinPlan,
    plan_thin,
    thin_product,
    thin_us,
)
from tilewright.schedule.builtin.gpu.gemm.transpose_operands import transpose_operands
from tilewright.schedule.builtin.gpu.injective import schedule_injective
from tilewright.schedule.builtin.gpu.opaque import schedule_opaque
from tilewright.schedule.builtin.gpu.recurrence import schedule_recurrence, shared_steps
from tilewright.schedule.builtin.gpu.rowwise import is_short, schedule_rowwise, without
from tilewright.schedule.builtin.gpu.split_reduction import (
    part_counts,
    parts_of,
    split_sum,
)
from tilewright.schedule.builtin.gpu.thread_blocks import (
    has_thread_blocks,
    schedule_thread_blocks,
)
from tilewright.schedule.builtin.gpu.thread_per_element import (
    has_neighbours,
    is_near,
    own_loops,
    schedule_points,
    schedule_sum,
)
from tilewright.schedule.builtin.gpu.transpose import transposed_read
from tilewright.schedule.builtin.gpu.weight_layout import arrange_weights
from tilewright.schedule.builtin.inlining import inline_copies, inline_into_last
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget


def schedule_for_gpu(
    func: Func, constants: frozenset[str], target: GpuTarget, decide: Decide | None = None
) -> ScheduledFunc:
    """Schedule a function; `constants` may get another layout.

    `decide` makes the choices that the rules leave open; without it, they are the defaults.
    """
    sch = Schedule(func, decide=decide)
    choose_tile(sch, target)
    func = sch.func
    graph = block_graph(func)
    shared = any(len(own_loops(sch, b)) < len(loops_above(func, b)) for b in graph.blocks)
    sums = [b for b in graph.blocks if reductions(b)]
    steps = shared_steps(func)
    tasks = tiled_tasks(func) if shared else None
    if tasks is not None:
        rule = "attention"
        schedule_tiled_attention(sch, tasks, target)
    elif steps is not None:
        rule = "recurrence"
        schedule_recurrence(sch, steps, constants, target)
    elif has_thread_blocks(func):
        rule = "thread_blocks"
        schedule_thread_blocks(sch)
    elif shared or not all(map(is_simple, graph.blocks)):
        rule = "opaque"
        schedule_opaque(sch, target)
    elif not sums:
        rule = "injective"
        inline_into_last(sch, graph)
        for b in block_graph(sch.func).blocks:
            schedule_injective(sch, b, target)
    else:
        rule = _schedule_copied(sch, sums, constants, target)
        rule = rule or _schedule_sums(sch, sums, constants, target)
    return ScheduledFunc(sch.func, sch.trace, f"gpu.{rule}")


def _schedule_copied(
    sch: Schedule, sums: list[Block], constants: frozenset[str], target: GpuTarget
) -> str:
    """Reductions that read transposed or padded copies; no rule if they need none."""
    if len(sums) > 1:
        return "rowwise" if _schedule_transposed_rows(sch, target) else ""
    return "depthwise" if _schedule_stencil(sch, sums[0].name, constants, target) else ""


def _schedule_sums(
    sch: Schedule, sums: list[Block], constants: frozenset[str], target: GpuTarget
) -> str:
    _inline_padding(sch, block_graph(sch.func))
    inline_copies(sch, block_graph(sch.func), frozenset())
    for b in sums:
        arrange_weights(sch, b.name, constants, target)
    graph = block_graph(sch.func)
    done: set[str] = set()
    if len(graph.outputs) == 1:
        name = sums[0].name
        if len(sums) == 1 and (rule := _schedule_one_sum(sch, name, target, products=True)):
            return rule
        if len(sums) == 1:
            _inline_before(sch, graph, name)
            graph = block_graph(sch.func)
        parts = _choose_parts(sch, graph, name, target) if len(sums) == 1 else 1
        if parts > 1:
            split_sum(sch, name, parts, target)
            done = {b.name for b in block_graph(sch.func).blocks} - {b.name for b in graph.blocks}
            graph = without(block_graph(sch.func), done)
        rows = row_axes(graph)
        if rows is not None and _choose_by_rows(sch, graph, sums, target):
            schedule_rowwise(sch, graph, rows, target)
            return "rowwise"
        if len(sums) == 1 and (rule := _schedule_one_sum(sch, name, target, done=done)):
            return rule
    for b in without(block_graph(sch.func), done).blocks:
        _schedule_alone(sch, b, target)
    return "fallback"


def _choose_by_rows(sch: Schedule, graph: BlockGraph, sums: list[Block], target: GpuTarget) -> bool:
    """Whether threads share rows, where one thread could have each element of the result."""
    if is_short(graph):
        return False
    if len(sums) > 1:
        return True
    block = graph.block(sums[0].name)
    by_rows = not has_neighbours(block, graph, target)
    if not spatial(block) or not _same_elements(graph, _position(graph, block.name)):
        return by_rows
    return sch.choose("by_rows", by_rows, lambda: (False, True))


def _choose_parts(sch: Schedule, graph: BlockGraph, name: str, target: GpuTarget) -> int:
    """Into how many parts a reduction is split that reads what is there from the beginning."""
    block = graph.block(name)
    if graph.blocks[0].name != name:
        return 1
    parts = parts_of(block, graph, target)
    return sch.choose(f"{name}.parts", parts, lambda: part_counts(block, graph, target))


def _schedule_transposed_rows(sch: Schedule, target: GpuTarget) -> bool:
    """Row-wise kernels of a strided input, which is transposed first."""
    trial = Schedule(sch.func)
    _inline_into_transposes(trial)
    graph = block_graph(trial.func)
    plain = [b for b in graph.blocks if spatial(b) and not reductions(b)]
    reads = {b.name: transposed_read(b, graph, target) for b in plain}
    transposed = [b for b in plain if (read := reads[b.name]) is not None and not read.run]
    rest = without(graph, {b.name for b in transposed})
    if not transposed or len(graph.outputs) != 1 or transposed[-1] is graph.blocks[-1]:
        return False
    rows = row_axes(rest)
    if rows is None or is_short(rest):
        return False
    _inline_into_transposes(sch)
    schedule_rowwise(sch, rest, rows, target)
    for b in transposed:
        schedule_injective(sch, b, target)
    return True


def _inline_into_transposes(sch: Schedule) -> None:
    """Inline what only a transpose reads: it is computed in transposed order."""
    for b in reversed(block_graph(sch.func).blocks):
        if not is_copy(b) or not spatial(b) or _reads_near(block_graph(sch.func), b):
            continue
        for made in reversed(block_graph(sch.func).blocks):
            graph, buffer = block_graph(sch.func), made.writes[0].buffer
            alone = [r.name for r in graph.consumers(buffer)] == [b.name]
            if alone and not reductions(made) and buffer not in graph.outputs:
                sch.inline(made.name)


def _reads_near(graph: BlockGraph, block: Block) -> bool:
    """Whether the reads of neighbouring elements are coalesced."""
    last = spatial(block)[-1].name
    reads = [x for x in reads_of(block) if uses(x, last)]
    return all(is_near(x, graph.buffers[x.buffer], last) for x in reads)


def _schedule_stencil(
    sch: Schedule, name: str, constants: frozenset[str], target: GpuTarget
) -> bool:
    """One reduction over overlapping windows, and its epilogue."""
    graph = block_graph(sch.func)
    position = _position(graph, name)
    if len(graph.outputs) != 1 or not _same_elements(graph, position):
        return False
    if match_gemm(graph.block(name)) is not None:
        return False
    arrange_weights(sch, name, constants, target)
    graph = block_graph(sch.func)
    plan = choose_stencil(sch, graph, name, target)
    if plan is None:
        return False
    held = staged(graph, name, plan.buffer)
    for b in graph.blocks[:position]:
        if held is None or b.name != held.name:
            _inline_or_schedule(sch, b, target)
    for b in graph.blocks[position + 1 : -1]:
        sch.inline(b.name)
    if position == len(graph.blocks) - 1:
        sch.cache_write(name, "local")
    schedule_depthwise(sch, name, plan)
    return True


def _inline_or_schedule(sch: Schedule, block: Block, target: GpuTarget) -> None:
    """Inline a copy into its consumer, unless its reads are not coalesced."""
    if is_copy(block) and _reads_near(block_graph(sch.func), block):
        sch.inline(block.name)
    else:
        _schedule_alone(sch, block, target)


def _inline_before(sch: Schedule, graph: BlockGraph, name: str) -> None:
    """Inline what only a reduction reads."""
    for b in reversed(graph.blocks[: [b.name for b in graph.blocks].index(name)]):
        buffer = b.writes[0].buffer
        alone = [r.name for r in block_graph(sch.func).consumers(buffer)] == [name]
        if alone and not reductions(b) and buffer not in graph.outputs:
            sch.inline(b.name)


def _inline_padding(sch: Schedule, graph: BlockGraph) -> None:
    """Inline padded copies: a predicate costs less than memory traffic."""
    for b in graph.blocks:
        if not reductions(b) and b.writes[0].buffer not in graph.outputs and _pads(value_of(b)):
            sch.inline(b.name)


def _pads(value: Expr) -> bool:
    match value:
        case Load():
            return True
        case Select(_, Load(), Const()):
            return True
    return False


def _schedule_one_sum(
    sch: Schedule,
    name: str,
    target: GpuTarget,
    products: bool = False,
    done: Collection[str] = (),
) -> str:
    """One reduction and its epilogue, if it has one; the blocks before get nests of their own.

    No rule if it is not alone, or no product where only those are wanted.
    """
    graph = without(block_graph(sch.func), done)
    if not spatial(graph.block(name)) or not _same_elements(graph, _position(graph, name)):
        return ""
    thin = _plan_thin(graph, graph.block(name), target) if products else None
    if products and thin is None:
        transpose_operands(sch, name, target)
        graph = without(block_graph(sch.func), done)
    block, position = graph.block(name), _position(graph, name)
    after = graph.blocks[position + 1 :]
    matrix = tensor_core_tiles_of(block, graph.buffers, target, after) if products else None
    simt = products and matrix is None
    tiles = simt_tiles_of(block, graph.buffers, target) if simt else matrix
    found = thin or tiles
    if products and (found is None or not _choose_tiles(sch, graph, block, found, target)):
        return ""
    for b in graph.blocks[:position]:
        _schedule_alone(sch, b, target)
    for b in graph.blocks[position + 1 : -1]:
        sch.inline(b.name)
    if position == len(graph.blocks) - 1:
        sch.cache_write(name, "local")
    if found is not None:
        _schedule_product(sch, name, found, target)
        return "gemm"
    columns = plan_columns(block, graph.buffers, target)
    if columns is not None:
        schedule_columns(sch, name, columns)
        return "columns"
    schedule_sum(sch, name, target, parts=bool(done))
    return "thread_per_element"


def _plan_thin(graph: BlockGraph, block: Block, target: GpuTarget) -> ThinPlan | None:
    """All rows at once, where that is faster than tiles on CUDA cores."""
    made, last = ([it.extent for it in spatial(b)] for b in (block, graph.blocks[-1]))
    product = thin_product(block, graph.buffers)
    if product is None or made != last:
        return None
    plan = plan_thin(product, target)
    if plan is None or product.bytes < F32.bytes:
        return plan
    tiles = simt_tiles_of(block, graph.buffers, target)
    if tiles is None:
        return plan
    faster = thin_us(plan, product, target) < tiles.seconds(tiles.default) * 1e6
    return plan if faster else None


def _schedule_product(
    sch: Schedule, name: str, found: SimtTiles | TensorCoreTiles | ThinPlan, target: GpuTarget
) -> None:
    """One product, by tiles or all rows at once."""
    if isinstance(found, ThinPlan):
        schedule_thin(sch, name, found, target)
    elif isinstance(found, TensorCoreTiles):
        schedule_tensor_core(sch, name, found, target)
    else:
        schedule_simt(sch, name, found, target)


def _choose_tiles(
    sch: Schedule,
    graph: BlockGraph,
    block: Block,
    found: SimtTiles | TensorCoreTiles | ThinPlan,
    target: GpuTarget,
) -> bool:
    """Whether a GEMM is computed in tiles: one of few rows or columns may be faster row-wise."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    few = min(size_of(gemm.m), size_of(gemm.n)) < SIMT.min_side
    if not few or row_axes(graph) is None or is_short(graph):
        return True
    rowwise = isinstance(found, SimtTiles) and prefers_rowwise(block, found, target)
    return sch.choose("tiles", not rowwise, lambda: (False, True))


def _position(graph: BlockGraph, name: str) -> int:
    return [b.name for b in graph.blocks].index(name)


def _same_elements(graph: BlockGraph, position: int) -> bool:
    """Whether every block behind a reduction is elementwise on its result."""
    block = graph.blocks[position]
    for b in graph.blocks[position + 1 :]:
        if len(spatial(b)) != len(spatial(block)) or b.predicate is not block.predicate:
            return False
        if sorted(str(it.extent) for it in spatial(b)) != sorted(
            str(it.extent) for it in spatial(block)
        ):
            return False
        for load in reads_of(b):
            plain = {str(i) for i in load.indices}
            if load.buffer in _written(graph, position) and plain != {it.name for it in spatial(b)}:
                return False
    return True


def _written(graph: BlockGraph, position: int) -> set[str]:
    return {r.buffer for b in graph.blocks[position:] for r in b.writes}


def _schedule_alone(sch: Schedule, block: Block, target: GpuTarget) -> None:
    columns = plan_columns(block, block_graph(sch.func).buffers, target)
    if columns is not None:
        sch.cache_write(block.name, "local")
        schedule_columns(sch, block.name, columns)
    elif reductions(block):
        schedule_points(sch, block, target)
    else:
        schedule_injective(sch, block, target)
