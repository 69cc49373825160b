"""Products of few rows with a matrix that is read once, most of a step's bytes at a time.

    grid: (part of K, columns)
      for steps of K
        thread (group, lane): b = B[n, k], a = A[m, k]       registers: all loads of a step
        thread (group, lane): s[m, n] += a * b               k = lane, lane + lanes, ...
      allreduce (lane):       t[m, n] = sum of s[m, n]       shared
      thread (m, n):          result = epilogue(t)

A thread has all rows of some columns. Where B is K-major, lanes go along K. Where it is N-major,
they go along columns, neighbours in a vector, and groups along K:

        thread (group, lane): s[m, vector] += a * b          k = group * vectors, ...
      thread (m, n):          t[m, n] = sum of the groups' s[m, n]

A step that reaches beyond K leaves out what is there by guards, which are around loads or around
arithmetic: no load waits for another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.analysis.gemm import match_gemm, operand_load
from tilewright.schedule.builtin.gpu.gemm.thin_plan import ThinPlan
from tilewright.schedule.builtin.gpu.thread_per_element import (
    bind_threads,
    own_loops,
    schedule_sum,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget


def schedule_thin(sch: Schedule, name: str, plan: ThinPlan, target: GpuTarget) -> None:
    """Schedule a product and its epilogue."""
    order = _schedule_along_k if plan.along_k else _schedule_along_n
    if plan.part is None:
        order(sch, plan, name, block_graph(sch.func).blocks[-1].name)
        return
    *_, depth = own_loops(sch, block_graph(sch.func).block(name))
    number, _ = sch.split(depth, [None, plan.part])
    part = str(sch.rfactor(name, number, own_start=True))
    order(sch, plan, part, str(sch.cache_write(part, "global")))
    schedule_sum(sch, name, target, parts=True)


def _schedule_along_k(sch: Schedule, plan: ThinPlan, name: str, reader: str) -> None:
    """Lanes along K: the sum of a column is theirs together."""
    copy, left = _read_ahead(sch, name)
    grid, *points = _blocks(sch, name, reader, plan.across)
    *rows, across, depth = own_loops(sch, block_graph(sch.func).block(name))
    group, column = sch.split(across, [plan.groups, plan.columns])
    step, vector, lane, element = sch.split(depth, [None, plan.vectors, plan.lanes, plan.width])
    sch.reorder(step, group, lane, vector, column, *rows, element)
    part = str(sch.rfactor(name, lane))
    kept = 2 if plan.columns > 1 else 1  # loops of one iteration are not repeated
    first = _begin(sch, part, step)
    _on_threads(sch, first[:-kept], first[-kept:])
    _on_threads(sch, [group, lane], [vector, column, *rows, element])
    across, depth = sch.compute_at(copy, step)
    group, column = sch.split(across, [plan.groups, plan.columns])
    vector, lane, element = sch.split(depth, [plan.vectors, plan.lanes, plan.width])
    sch.reorder(group, lane, vector, column, element)
    _on_threads(sch, [group, lane], [vector, column], [element] if plan.width > 1 else [])
    sch.reindex_cache_read(part, left, "register")
    total = block_graph(sch.func).block(name)
    sch.set_scope(total.writes[0].buffer, "shared")
    *own, lane = own_loops(sch, total)
    sch.bind(lane, "allreduce")
    _on_threads(sch, own[:-kept], own[-kept:])
    bind_threads(sch, points)
    sch.bind(grid, "grid")


def _schedule_along_n(sch: Schedule, plan: ThinPlan, name: str, reader: str) -> None:
    """Lanes along columns: groups of threads have other terms of each."""
    ahead, left = _read_ahead(sch, name)
    *_, depth = own_loops(sch, block_graph(sch.func).block(name))
    _, group, vector = sch.split(depth, [None, plan.groups, plan.vectors])
    part = str(sch.rfactor(name, group, own_start=True))
    sums = block_graph(sch.func).block(part).writes[0].buffer
    copy = str(sch.cache_read(name, sums, "shared"))
    grid, *points = _blocks(sch, name, reader, plan.across)
    for nest in (copy, part):
        sch.compute_at(nest, grid)
    own = own_loops(sch, block_graph(sch.func).block(part))
    kept = 2 if plan.vectors > 1 else 1  # loops of one iteration are not repeated
    (group, *rows, across), (step, *vectors) = own[:-kept], own[-kept:]
    lane, *element = _lanes(sch, across, plan)
    sch.reorder(step, group, lane, *vectors, *rows, *element)
    first = _begin(sch, part, step)
    _on_threads(sch, first[:2], first[2:3], first[3:])
    _on_threads(sch, [group, lane], [*vectors, *rows], element)
    depth, across = sch.compute_at(ahead, step)
    group, vector = sch.split(depth, [plan.groups, plan.vectors])
    lane, *element = _lanes(sch, across, plan)
    sch.reorder(group, lane, vector, *element)
    _on_threads(sch, [group, lane], [vector], element)
    sch.reindex_cache_read(part, left, "register")
    group, *rows, across = own_loops(sch, block_graph(sch.func).block(copy))
    lane, *element = _lanes(sch, across, plan)
    sch.reorder(group, lane, *rows, *element)
    _on_threads(sch, [group, lane], rows, element)
    total = block_graph(sch.func).block(name)
    sch.set_scope(total.writes[0].buffer, "shared")
    *own, group = own_loops(sch, total)
    sch.unroll(group)
    bind_threads(sch, own)
    bind_threads(sch, points)
    sch.bind(grid, "grid")


def _read_ahead(sch: Schedule, name: str) -> tuple[str, str]:
    """Let a product read B from registers; also the name of A."""
    gemm = match_gemm(block_graph(sch.func).block(name))
    assert gemm is not None
    left, right = (operand_load(x).buffer for x in (gemm.a, gemm.b))
    return str(sch.cache_read(name, right, "register")), left


def _lanes(sch: Schedule, across: str, plan: ThinPlan) -> list[str]:
    """Columns as lanes, and the vector of each."""
    return [*sch.split(across, [plan.lanes, plan.width])] if plan.width > 1 else [across]


def _blocks(sch: Schedule, name: str, reader: str, columns: int) -> list[str]:
    """Blocks of so many columns with all rows: their loop, and those of the reader in each."""
    *parts, rows, across = own_loops(sch, block_graph(sch.func).block(reader))
    grid, inner = sch.split(across, [None, columns])
    sch.reorder(*parts, grid, rows, inner)
    grid = str(sch.fuse(*parts, grid)) if parts else grid
    sch.compute_at(name, grid)
    return [grid, rows, inner]


def _begin(sch: Schedule, part: str, outer: str) -> list[str]:
    """The sums of threads are in registers, and begin in a nest of their own: its loops."""
    block = block_graph(sch.func).block(part)
    sch.set_scope(block.writes[0].buffer, "register")
    init = f"{part}.init" if block.init is None else sch.decompose_reduction(part, outer)
    return own_loops(sch, block_graph(sch.func).block(str(init)))


def _on_threads(
    sch: Schedule, threads: Sequence[str], own: Sequence[str], vectors: Sequence[str] = ()
) -> None:
    """Loops over threads, and those of each thread."""
    bind_threads(sch, threads)
    for loop in own:
        sch.unroll(loop)
    for loop in vectors:
        sch.vectorize(loop)
