"""A micro-performance model: how many cycles a statement takes on a machine, by resource.

Straight-line code (the unrolled and vectorized inner loops) is counted in instructions: arithmetic,
loads and stores of what does not stay in registers, the latency of dependent sums, register spills.
Around it, each cache level is filled with the lines that do not fit in the one below: the outermost
loops whose data fit run from it, those outside fill it again. The time is the largest of these,
since they overlap (the roofline; Roller rates tiles in this way).

The figures are those of `target.costs`, in cycles: only ratios matter for an order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.target.calibration.cpu import CpuCosts
from tilewright.target.cpu import LINE_BYTES, CpuTarget
from tilewright.tune.features.accesses import Statement, StatementAccess


@dataclass(frozen=True)
class Cost:
    """Cycles of one core for all runs of a statement, by resource, and of the machine in all."""

    arithmetic: float
    load_store: float
    dependency: float
    spills: float
    loop_overhead: float
    fills: tuple[float, float, float]
    threads: float
    registers: float
    total: float


def estimate_all(statements: Sequence[Statement], target: CpuTarget) -> tuple[list[Cost], float]:
    """What each statement costs, and the cycles of all: threads start once for a parallel loop."""
    costs = [estimate(s, target) for s in statements]
    forks = {s.task: s.forks for s in statements if s.task}
    return costs, sum(cost.total for cost in costs) + target.costs.fork_cycles * sum(forks.values())


def estimate(s: Statement, target: CpuTarget) -> Cost:
    """What a statement costs."""
    body = s.body
    trips = math.prod(s.extents[:body])
    lanes, costs = target.lanes(s.bits), target.costs
    vectors = math.prod(s.extents[body:]) / _lanes_used(s, lanes)
    sums = _sums(s, body, lanes)
    registers = sums + 1 + _operands(s, body, lanes)
    busy_for = costs.instruction_cycles
    each = sum(getattr(busy_for, kind) * n for kind, n in s.operations.items())
    arithmetic = trips * vectors * each
    load_store = trips * sum(_moves(s, a, body, lanes, costs) for a in s.accesses)
    dependency = trips * costs.fma_latency * vectors / sums if sums and s.runs > 1 else 0.0
    spills = trips * max(0.0, registers - target.vector_registers) * 2 * costs.move_cycles
    loop_overhead = costs.loop_cycles * trips
    fills = _fills(s, target)
    busy = [max(arithmetic, load_store, dependency) + spills + loop_overhead, *fills]
    most = max(busy)
    cycles = most + costs.overlap * (sum(busy) - most)
    threads = _threads(s, target.cores)
    return Cost(
        arithmetic,
        load_store,
        dependency,
        spills,
        loop_overhead,
        (fills[0], fills[1], fills[2]),
        threads,
        registers,
        cycles / threads,
    )


def _lanes_used(s: Statement, lanes: int) -> float:
    """Iterations that one vector instruction does: part of a vector may stay empty."""
    wide = math.prod(e for e, kind in zip(s.extents, s.kinds, strict=True) if kind == "vectorize")
    if s.intrinsic:
        return lanes
    return wide / math.ceil(wide / lanes)


def _sums(s: Statement, body: int, lanes: int) -> float:
    """Vectors that are added to again and again; 0 if the statement sums nothing."""
    for a in s.accesses:
        if a.accumulates:
            return max(1.0, a.elements[body] / max(1.0, _lanes_used(s, lanes)))
    return 0.0


def _operands(s: Statement, body: int, lanes: int) -> float:
    """Vectors that are held while the others pass by: those of the smallest operand of a step."""
    read = [a for a in s.accesses if a.reads and not a.writes]
    sums = next((a for a in s.accesses if a.accumulates), None)
    while sums is not None and body < len(s.extents) and sums.steps[body] == 0:
        body += 1
    return min((_vectors(s, a, body, lanes) for a in read), default=0.0)


def _vectors(s: Statement, a: StatementAccess, level: int, lanes: int) -> float:
    return a.elements[level] / (_lanes_used(s, lanes) if _step(s, a) == 1 else 1.0)


def _step(s: Statement, a: StatementAccess) -> int:
    """By how much the address moves from lane to lane; much where nothing is known of it."""
    if not a.steps or s.kinds[-1] != "vectorize":
        return 0
    return LINE_BYTES if a.clamped else abs(a.steps[-1])


def _moves(s: Statement, a: StatementAccess, body: int, lanes: int, costs: CpuCosts) -> float:
    """Cycles of loading or storing a buffer in one trip of the straight code."""
    if a.scope == "register":
        return 0.0
    each = costs.insert_cycles if _step(s, a) > 1 else costs.move_cycles
    cycles = each * _vectors(s, a, body, lanes) * ((a.reads > 0) + (a.writes > 0))
    # What the innermost loop does not move is loaded before it.
    still = body > 0 and a.steps[body - 1] == 0
    return cycles / s.extents[body - 1] if still else cycles


def _fills(s: Statement, target: CpuTarget) -> list[float]:
    """Cycles of filling each cache from the next, and the last from memory."""
    memory = [a for a in s.accesses if a.scope != "register"]
    shared = target.l3 / max(1.0, _threads(s, target.cores))
    found = []
    capacities = (target.l1, target.l2, shared)
    for capacity, (cycles, wait) in zip(capacities, target.costs.line_fill, strict=True):
        level = 0
        while level < len(s.extents) and _bytes(memory, level) > capacity:
            level += 1
        again = math.prod(s.extents[:level])
        busy = sum(
            min(again, _moving(s, a, level) * 4)
            * a.lines[level]
            * ((2 if a.writes else 1) * cycles + wait / a.row[level])
            for a in memory
        )
        found.append(busy if _bytes(memory, 0) > capacity else 0.0)
    return found


def _moving(s: Statement, a: StatementAccess, level: int) -> int:
    """The runs of outer loops in which a buffer's place changes; each is loaded at least once."""
    return math.prod(e for e, step in zip(s.extents[:level], a.steps, strict=False) if step)


def _bytes(accesses: list[StatementAccess], level: int) -> int:
    return LINE_BYTES * sum(a.lines[level] for a in accesses)


def _threads(s: Statement, cores: int) -> float:
    """How many cores work, on average: the last round may leave some without work."""
    tasks = math.prod(e for e, kind in zip(s.extents, s.kinds, strict=True) if kind == "parallel")
    return tasks / math.ceil(tasks / cores)
