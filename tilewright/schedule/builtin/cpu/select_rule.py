"""Which built-in schedule a function gets, decided by its loop structure; see `rules.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.loop.nodes import Block, Func, Iter
from tilewright.schedule.analysis.blocks import (
    Facts,
    facts_of,
    is_simple,
    reductions,
    typical_extent,
)
from tilewright.schedule.analysis.tile_axes import copies_for_one_row, tile_roles
from tilewright.schedule.builtin.cpu.attention import schedule_attention, tasks_loop
from tilewright.schedule.builtin.cpu.depthwise import schedule_windows, window_roles
from tilewright.schedule.builtin.cpu.fallback import schedule_nests
from tilewright.schedule.builtin.cpu.gemm.amx import matrix_roles, schedule_matrix
from tilewright.schedule.builtin.cpu.gemm.bf16_dot import pair_roles, schedule_pairs
from tilewright.schedule.builtin.cpu.gemm.narrow_accum import brief_depth
from tilewright.schedule.builtin.cpu.gemm.register_blocked import schedule_tile
from tilewright.schedule.builtin.cpu.injective import schedule_injective
from tilewright.schedule.builtin.cpu.opaque import schedule_opaque
from tilewright.schedule.builtin.cpu.recurrence import schedule_recurrence, steps_loop
from tilewright.schedule.builtin.cpu.rowwise import row_axes, schedule_rows
from tilewright.schedule.builtin.cpu.small_transforms import (
    schedule_formula,
    schedule_staged,
    staged_blocks,
)
from tilewright.schedule.builtin.inlining import inline_copies, inline_into_last
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.target.cpu import CpuTarget

# So many rows of a product are many.
MANY_ROWS = 4


def schedule_func(
    func: Func, constants: frozenset[str], target: CpuTarget, decide: Decide | None = None
) -> ScheduledFunc:
    """Schedule a function; `constants` are parameters whose layout it may choose.

    With `decide`, this is a program that asks: every schedule that the rules can make is an answer.
    """
    sch = Schedule(func, decide=decide)
    facts = facts_of(func)
    if not all(is_simple(b) for b in facts.blocks):
        schedule_opaque(sch, facts, target)
        return ScheduledFunc(sch.func, sch.trace, "opaque")
    tasks, steps = tasks_loop(func), steps_loop(func)
    sums = [b for b in facts.blocks if reductions(b)]
    if tasks is not None:
        rule = "attention"
        schedule_attention(sch, tasks, target)
    elif steps is not None:
        rule = "recurrence"
        schedule_recurrence(sch, steps, constants, target)
    elif not sums and (staged := staged_blocks(facts)):
        rule = "staged"
        schedule_staged(sch, staged, target)
    elif not sums:
        inline_into_last(sch, facts)
        rule = "injective"
        facts = facts_of(sch.func)
        schedule_injective(sch, facts.blocks[-1], target)
    else:
        rule = _schedule_reductions(sch, sums, constants, target)
    return ScheduledFunc(sch.func, sch.trace, rule)


def _schedule_reductions(
    sch: Schedule, sums: list[Block], constants: frozenset[str], target: CpuTarget
) -> str:
    facts = facts_of(sch.func)
    if len(sums) == 1 and len(facts.outputs) == 1:
        matrix = matrix_roles(sums[0], facts, constants, target)
        if matrix is not None and sch.choose("matrix", True, lambda: (False, True)):
            schedule_matrix(sch, sums[0].name, matrix, target)
            return "matrix"
    staged = staged_blocks(facts)
    inline_copies(sch, facts, staged)
    possible = _possible_rules(facts_of(sch.func), [b.name for b in sums], constants)
    best = next(possible)
    rule = sch.choose("rule", best, lambda: (best, *possible))
    return _SCHEDULES[rule](sch, sums[0].name, staged, constants, target)


def _possible_rules(facts: Facts, sums: list[str], constants: frozenset[str]) -> Iterator[str]:
    """The rules for a function with sums, the best first."""
    if len(facts.outputs) == 1:  # else some block in the middle is wanted whole
        rows = row_axes(facts)
        one = facts.block(sums[0]) if len(sums) == 1 else None
        if one is not None and window_roles(one, facts, constants) is not None:
            yield "windows"
        roles = None if one is None else tile_roles(one, facts, constants)
        if roles is not None and rows is not None and copies_for_one_row(roles, facts, constants):
            yield "rows"
            rows = None
        if roles is not None:
            yield "tile"
            if roles.panel is not None and roles.row is not None and _many_rows(roles.row):
                return  # what rows share would come from far for each of them
        if rows is not None:
            yield "rows"
    yield "nests"


def _many_rows(row: Iter) -> bool:
    """Whether so many rows share an operand that only tiles are any good."""
    return typical_extent(row.extent) >= MANY_ROWS


def _schedule_rows(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    facts = facts_of(sch.func)
    rows = row_axes(facts)
    assert rows is not None
    schedule_rows(sch, facts, rows, target)
    return "rows"


def _schedule_nests(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    schedule_nests(sch, facts_of(sch.func), staged, target)
    return "nests"


def _schedule_windows(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """Windows of single channels, and what is computed of them on each tile."""
    facts = facts_of(sch.func)
    position = [b.name for b in facts.blocks].index(name)
    depth = brief_depth(facts.block(name))
    if depth is not None and depth.part == 0:
        sch.narrow_sum(name)
    for b in facts.blocks[position + 1 : -1]:
        sch.inline(b.name)
    if position == len(facts.blocks) - 1:
        sch.cache_write(name, "register")
    facts = facts_of(sch.func)
    roles = window_roles(facts.block(name), facts, constants)
    assert roles is not None
    schedule_windows(sch, facts.block(name), roles, facts.blocks[-1], constants, target)
    return "windows"


def _schedule_tiled(
    sch: Schedule, name: str, staged: frozenset[str], constants: frozenset[str], target: CpuTarget
) -> str:
    """One reduction: what comes before in nests of its own, what comes after on each tile."""
    facts = facts_of(sch.func)
    position = [b.name for b in facts.blocks].index(name)
    for b in facts.blocks[:position]:
        schedule_formula(sch, b, staged, target)
    after = facts.blocks[position + 1 :]
    for b in after[:-1]:
        sch.inline(b.name)
    if not after:
        sch.cache_write(name, "register")
    facts = facts_of(sch.func)
    epilogue = facts.blocks[[b.name for b in facts.blocks].index(name) + 1]
    block = facts.block(name)
    pairs = pair_roles(block, facts, constants, target)
    if pairs is not None and sch.choose("pairs", True, lambda: (False, True)):
        schedule_pairs(sch, block, pairs, epilogue, target)
        return "pairs"
    roles = tile_roles(block, facts, constants)
    assert roles is not None
    schedule_tile(sch, block, roles, epilogue, constants, target)
    return "tile"


_SCHEDULES = {
    "windows": _schedule_windows,
    "tile": _schedule_tiled,
    "rows": _schedule_rows,
    "nests": _schedule_nests,
}
