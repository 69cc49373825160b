"""Which built-in schedule a function gets, decided by its loop structure; see `rules.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.loop.nodes import Block, Func, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    is_simple,
    reductions,
    typical_extent,
)
from tilewright.schedule.analysis.stencil_axes import match_stencil
from tilewright.schedule.analysis.tile_axes import copies_b_for_one_row, match_tile_axes
from tilewright.schedule.builtin.cpu.attention import schedule_attention, tasks_loop
from tilewright.schedule.builtin.cpu.column_reduction import (
    is_column_reduction,
    schedule_column_reduction,
)
from tilewright.schedule.builtin.cpu.depthwise import schedule_depthwise
from tilewright.schedule.builtin.cpu.fallback import schedule_fallback
from tilewright.schedule.builtin.cpu.gemm.amx import match_amx_gemm, schedule_amx
from tilewright.schedule.builtin.cpu.gemm.bf16_dot import match_bf16_dot_gemm, schedule_bf16_dot
from tilewright.schedule.builtin.cpu.gemm.group_layout import store_by_group
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import narrow_k_block
from tilewright.schedule.builtin.cpu.gemm.line_bands import choose_band
from tilewright.schedule.builtin.cpu.gemm.phase_layout import schedule_phase_copy, store_by_phase
from tilewright.schedule.builtin.cpu.gemm.register_blocked import schedule_register_blocked
from tilewright.schedule.builtin.cpu.injective import schedule_injective
from tilewright.schedule.builtin.cpu.opaque import schedule_opaque
from tilewright.schedule.builtin.cpu.recurrence import schedule_recurrence, steps_loop
from tilewright.schedule.builtin.cpu.rowwise import row_axes, schedule_rowwise
from tilewright.schedule.builtin.cpu.short_rows import is_short_rows, schedule_short_rows
from tilewright.schedule.builtin.cpu.small_transforms import (
    schedule_formula,
    schedule_small_transforms,
    small_transform_blocks,
)
from tilewright.schedule.builtin.inlining import inline_copies, inline_into_last
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.target.cpu import CpuTarget

# From so many rows on, a GEMM is only ever tiled.
ALWAYS_TILED_M = 4


def schedule_func(
    func: Func, constants: frozenset[str], target: CpuTarget, decide: Decide | None = None
) -> ScheduledFunc:
    """Schedule a function; `constants` are parameters whose layout it may choose.

    `decide` makes the choices that the rules leave open; without it, they are the defaults.
    """
    sch = Schedule(func, decide=decide)
    graph = block_graph(func)
    if not all(is_simple(b) for b in graph.blocks):
        schedule_opaque(sch, graph, target)
        return ScheduledFunc(sch.func, sch.trace, "opaque")
    tasks, steps = tasks_loop(func), steps_loop(func)
    sums = [b for b in graph.blocks if reductions(b)]
    if tasks is not None:
        rule = "attention"
        schedule_attention(sch, tasks, target)
    elif steps is not None:
        rule = "recurrence"
        schedule_recurrence(sch, steps, constants, target)
    elif not sums and (staged := small_transform_blocks(graph)):
        rule = "small_transforms"
        schedule_small_transforms(sch, staged, target)
    elif not sums:
        inline_into_last(sch, graph)
        rule = "injective"
        graph = block_graph(sch.func)
        schedule_injective(sch, graph.blocks[-1], target)
    else:
        rule = _schedule_reductions(sch, sums, constants, target)
    return ScheduledFunc(sch.func, sch.trace, rule)


def _schedule_reductions(
    sch: Schedule, sums: list[Block], constants: frozenset[str], target: CpuTarget
) -> str:
    graph = block_graph(sch.func)
    if len(sums) == 1 and len(graph.outputs) == 1:
        gemm = match_amx_gemm(sums[0], graph, constants, target)
        if gemm is not None and sch.choose("amx", True, lambda: (False, True)):
            schedule_amx(sch, sums[0].name, gemm, target)
            return "amx"
    staged = small_transform_blocks(graph)
    inline_copies(sch, graph, staged)
    graph = block_graph(sch.func)
    possible = _possible_rules(graph, [b.name for b in sums], constants, target)
    best = next(possible)
    rule = sch.choose("rule", best, lambda: (best, *possible))
    return _SCHEDULES[rule](sch, sums[0].name, staged, constants, target)


def _possible_rules(
    graph: BlockGraph, sums: list[str], constants: frozenset[str], target: CpuTarget
) -> Iterator[str]:
    """The rules for a function with reductions, the best first."""
    if len(graph.outputs) == 1:  # else the whole result of an earlier block is an output
        rows = row_axes(graph)
        one = graph.block(sums[0]) if len(sums) == 1 else None
        if one is not None and match_stencil(one, graph, constants) is not None:
            yield "depthwise"
        axes = None if one is None else match_tile_axes(one, graph, constants)
        if axes is not None and rows is not None and copies_b_for_one_row(axes, graph, constants):
            yield "rowwise"
            rows = None
        if one is not None and axes is not None and axes.packed_b is None:
            if is_column_reduction(one, graph):
                yield "column_reduction"
        if axes is not None:
            yield "register_blocked"
            if axes.packed_b is not None and axes.m is not None and _many_rows(axes.m):
                return  # without tiles, each row would load the operand from memory
        if one is not None and axes is None and is_short_rows(one, graph, target):
            yield "short_rows"
        if rows is not None:
            yield "rowwise"
    yield "fallback"


def _many_rows(row: Iter) -> bool:
    """Whether enough rows reuse an operand that only register tiles are fast."""
    return typical_extent(row.extent) >= ALWAYS_TILED_M


def _schedule_rowwise(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    graph = block_graph(sch.func)
    rows = row_axes(graph)
    assert rows is not None
    schedule_rowwise(sch, graph, rows, target)
    return "rowwise"


def _schedule_fallback(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    schedule_fallback(sch, block_graph(sch.func), staged, target)
    return "fallback"


def _schedule_depthwise(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """Windows of single channels, with an epilogue on each tile."""
    graph = block_graph(sch.func)
    position = [b.name for b in graph.blocks].index(name)
    narrow = narrow_k_block(graph.block(name))
    if narrow is not None and narrow.factor == 0:
        sch.narrow_accumulator(name)
    for b in graph.blocks[position + 1 : -1]:
        sch.inline(b.name)
    if position == len(graph.blocks) - 1:
        sch.cache_write(name, "register")
    graph = block_graph(sch.func)
    axes = match_stencil(graph.block(name), graph, constants)
    assert axes is not None
    schedule_depthwise(sch, graph.block(name), axes, graph.blocks[-1], constants, target)
    return "depthwise"


def _schedule_column_reduction(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """A reduction down columns: its producers in nests of their own, its epilogue on each panel."""
    epilogue = _with_one_epilogue(sch, name, staged, "local", target)
    schedule_column_reduction(sch, name, epilogue, target)
    return "column_reduction"


def _schedule_short_rows(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """Many short rows at once, their epilogue on each vector of results."""
    epilogue = _with_one_epilogue(sch, name, staged, "register", target)
    schedule_short_rows(sch, name, epilogue, target)
    return "short_rows"


def _with_one_epilogue(
    sch: Schedule, name: str, staged: frozenset[str], scope: str, target: CpuTarget
) -> str:
    """Schedule what comes before a reduction, and make one block of what follows; its name."""
    graph = block_graph(sch.func)
    position = [b.name for b in graph.blocks].index(name)
    for b in graph.blocks[:position]:
        schedule_formula(sch, b, staged, target)
    after = graph.blocks[position + 1 :]
    for b in after[:-1]:
        sch.inline(b.name)
    return after[-1].name if after else sch.cache_write(name, scope)


def _schedule_register_blocked(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """One reduction: its producers in nests of their own, its epilogue on each tile."""
    graph = block_graph(sch.func)
    axes = match_tile_axes(graph.block(name), graph, constants)
    assert axes is not None
    store_by_group(sch, name, axes, graph)
    phases = store_by_phase(sch, name, axes, constants, target)
    band = choose_band(sch, name, phases.step if phases else 1, constants, target)
    if phases is not None and band is None:
        schedule_phase_copy(sch, phases, target)
    apart = {x for x in (phases and phases.name, band and band.copy) if x}
    after = _with_one_epilogue(sch, name, staged | apart, "register", target)
    graph = block_graph(sch.func)
    epilogue, block = graph.block(after), graph.block(name)
    gemm = match_bf16_dot_gemm(block, graph, constants, target)
    if gemm is not None and sch.choose("bf16_dot", True, lambda: (False, True)):
        schedule_bf16_dot(sch, block, gemm, epilogue, target)
        return "bf16_dot"
    axes = match_tile_axes(block, graph, constants)
    assert axes is not None
    schedule_register_blocked(sch, block, axes, epilogue, constants, target, band)
    return "register_blocked"


_SCHEDULES = {
    "column_reduction": _schedule_column_reduction,
    "depthwise": _schedule_depthwise,
    "register_blocked": _schedule_register_blocked,
    "rowwise": _schedule_rowwise,
    "short_rows": _schedule_short_rows,
    "fallback": _schedule_fallback,
}
