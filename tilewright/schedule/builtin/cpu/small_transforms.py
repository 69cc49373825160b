"""Chains of small transforms: a few elements in, a few out, each by a formula of its own.

The formulas of a block that a short axis *chooses* between have most of their arithmetic in common.
So the short axis is unrolled, and what it reads is computed once, next to it, into a buffer of the
thread:

    parallel tile
      for vector of channels
        for column: t[0..5, column] = six formulas of six pixels
        for row:    v[row, 0..5]    = six formulas of t[row, 0..5]

A block that transposes vectors is a nest of its own.
"""

from __future__ import annotations

from tilewright.arith.expr import Binary, Const, Expr, Load, Select, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, subexpressions
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    loop_of,
    op_count,
    spatial,
    typical_extent,
    value_of,
)
from tilewright.schedule.builtin.cpu.injective import (
    MAX_CHOICES,
    parallelize_evenly,
    schedule_injective,
)
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Vectors of one formula in an iteration, where registers allow.
MAX_VECTORS = 4


def choices(block: Block) -> dict[str, int]:
    """The short axes that choose a formula, and their period (0: the axis itself chooses).

    select(i == 0, ..., select(i == 1, ...))          {"i": 0}
    select(i % 4 == 0, ..., select(i % 4 == 1, ...))  {"i": 4}
    """
    extents = {it.name: as_int(it.extent) for it in spatial(block)[:-1]}
    found: dict[str, int] = {}
    for e in subexpressions(value_of(block)):
        if not (isinstance(e, Select) and _compares(e.cond)):
            continue
        axis = _axis(e.cond.a)  # type: ignore[attr-defined]
        if axis is not None and axis[0] in extents:
            name, period = axis
            if 0 < (period or extents[name] or 0) <= MAX_CHOICES:
                found[name] = period
    return found


def _compares(condition: Expr) -> bool:
    return isinstance(condition, Binary) and condition.op == "eq" and isinstance(condition.b, Const)


def _axis(index: Expr) -> tuple[str, int] | None:
    """An index that is an axis, or an axis modulo a constant, with that constant."""
    if isinstance(index, Var):
        return index.name, 0
    if isinstance(index, Binary) and index.op == "mod" and isinstance(index.a, Var):
        period = as_int(index.b)
        return None if period is None else (index.a.name, period)
    return None


def small_transform_blocks(graph: BlockGraph) -> frozenset[str]:
    """Blocks to compute at their consumer.

    These are blocks with choices, and producers of blocks with choices that write to memory: that
    memory may alias what is read, so that everything would be loaded again for each formula.
    """
    found: set[str] = set()
    for b in reversed(graph.blocks):
        buffer = b.writes[0].buffer
        readers = graph.consumers(buffer)
        if buffer in graph.outputs or len(readers) != 1:
            continue
        reader = readers[0]
        shared = choices(reader) and len(_reads(reader, buffer)) > 1 and reader.name not in found
        if choices(b) or shared:
            found.add(b.name)
    return frozenset(found)


def _reads(block: Block, buffer: str) -> list[Load]:
    return [x for x in loads(value_of(block)) if x.buffer == buffer]


def schedule_small_transforms(sch: Schedule, staged: frozenset[str], target: CpuTarget) -> None:
    """Schedule a function without reductions, of which some blocks are computed at a consumer."""
    _inline(sch, staged)
    for b in block_graph(sch.func).blocks:
        schedule_formula(sch, b, staged, target)


def schedule_formula(
    sch: Schedule, block: Block, staged: frozenset[str], target: CpuTarget
) -> None:
    """Schedule a nest without reductions, and the staged blocks that it reads."""
    if block.name in staged:
        return
    sources = _sources(block, block_graph(sch.func), staged)
    if sources:
        _schedule_chain(sch, block, sources, target)
    else:
        schedule_injective(sch, block, target)


def reads_staged(block: Block, graph: BlockGraph, staged: frozenset[str]) -> bool:
    """Whether staged blocks are computed at this one."""
    return any(_reads(block, graph.block(name).writes[0].buffer) for name in staged)


def _inline(sch: Schedule, staged: frozenset[str]) -> None:
    """Inline blocks that are neither staged nor transpose vectors."""
    for name in [b.name for b in block_graph(sch.func).blocks]:
        graph = block_graph(sch.func)
        b = graph.block(name)
        readers = graph.consumers(b.writes[0].buffer)
        if name in staged or b.writes[0].buffer in graph.outputs or not readers:
            continue
        transposed = any(_transposes(r, b.writes[0].buffer) for r in readers)
        feeds = any(r.name in staged for r in readers)
        feeds = feeds and any(_transposes(b, x.buffer) for x in loads(value_of(b)))
        if not transposed and not feeds:
            sch.inline(name)


def _transposes(block: Block, buffer: str) -> bool:
    """Whether the block reads a buffer along another axis than it writes."""
    last = spatial(block)[-1].name
    return any(
        last in free_vars(x) and last not in free_vars(x.indices[-1]) for x in _reads(block, buffer)
    )


def _sources(block: Block, graph: BlockGraph, staged: frozenset[str]) -> list[Block]:
    """The staged blocks that `block` reads, directly or not, the nearest first."""
    found: list[Block] = []
    reading = [block]
    while reading:
        reader = reading.pop()
        for b in graph.blocks:
            if b.name in staged and _reads(reader, b.writes[0].buffer):
                found.append(b)
                reading.append(b)
    return found


def _schedule_chain(sch: Schedule, block: Block, sources: list[Block], target: CpuTarget) -> None:
    """One block and the staged blocks that it reads, nearest first, all in the same loops."""
    drivers = _drivers(block, sources)
    inner = {axis: period for found in reversed(drivers) for axis, period in found.items()}
    inner = {**inner, **choices(block)}
    loops, short, lane = _split(sch, block, inner, _factor(sch, block, sources, target))
    sch.reorder(*loops, *short.values(), lane)
    if is_parallel(sch, block.name, op_count(block) * len(sources)):
        loops = parallelize_evenly(sch, block.name, loops, target)
    around = [loops[-1], *short.values()]
    for source, found in zip(sources, drivers, strict=True):
        driving = [short[axis] for axis in found] or [around[-1]]
        _place(sch, source, around[min(map(around.index, driving)) - 1])
    sch.unroll(around[-1])
    sch.vectorize(lane)


def _drivers(block: Block, sources: list[Block]) -> list[dict[str, int]]:
    """For each source the axes of `block`, with periods, that run through its choices."""
    known = {block.name: {it.name: (it.name, 0) for it in spatial(block)}}
    readers = [block, *sources]
    found = []
    for number, source in enumerate(sources):
        buffer = source.writes[0].buffer
        reader = next(r for r in readers[: number + 1] if _reads(r, buffer))
        through: dict[str, tuple[str, int]] = {}
        for it, index in zip(spatial(source), _reads(reader, buffer)[0].indices, strict=True):
            axis = _axis(index)
            if axis is not None and axis[0] in known[reader.name]:
                name, period = known[reader.name][axis[0]]
                through[it.name] = (name, period or axis[1])
        known[source.name] = through
        chosen = [through[axis] for axis in choices(source) if axis in through]
        found.append(dict(chosen))
    return found


def _factor(sch: Schedule, block: Block, sources: list[Block], target: CpuTarget) -> int:
    """How many elements of the last axis are computed together: whole vectors, none left over."""
    lanes = target.lanes(value_of(block).dtype.bits)
    most = max(len(list(loads(value_of(b)))) for b in (block, *sources))
    most = max(1, min(MAX_VECTORS, target.vector_registers // (2 * most)))
    extent = spatial(block)[-1].extent
    exact = [n for n in range(1, most + 1) if as_int(simplify(extent % (n * lanes))) == 0]
    vectors = sch.choose(f"{block.name}.vectors", max(exact, default=1), lambda: exact)
    return min(vectors * lanes, typical_extent(extent))


def _split(
    sch: Schedule, block: Block, inner: dict[str, int], factor: int
) -> tuple[list[str], dict[str, str], str]:
    """The outer loops, the short loops by axis, and the loop over the elements of a vector."""
    *axes, last = spatial(block)
    loops, short = [], {}
    for it in axes:
        period = inner.get(it.name)
        if period is None:
            loops.append(loop_of(it))
        elif period == 0:
            short[it.name] = loop_of(it)
        else:
            outer, short[it.name] = sch.split(loop_of(it), [None, period])
            loops.append(outer)
    outer, lane = sch.split(loop_of(last), [None, factor])
    return [*loops, outer], {axis: short[axis] for axis in inner}, lane


def _place(sch: Schedule, source: Block, at: str) -> None:
    """Compute a staged block in a loop of its reader, all its choices in one go."""
    axes = [it.name for it in source.iters]
    *loops, lane = sch.compute_at(source.name, at)
    chosen = choices(source) or axes[:-1]
    written = [loop for axis, loop in zip(axes, loops, strict=False) if axis in chosen]
    sch.reorder(*(loop for loop in loops if loop not in written), *written, lane)
    for loop in written:
        sch.unroll(loop)
    sch.vectorize(lane)
