"""Transposes through tiles in shared memory, so that reads and writes are both coalesced.

grid: tiles of 32 by 32
  thread: tile[j, i] = x[j, i]          coalesced reads
  thread: y[i, j] = f(tile[j, i])       coalesced writes

Elements of less than 32 bits move in words: a tile has 32 words in a row, and as many rows as a row
has elements, of which a thread transposes a few at a time.

Where one side is shorter than that, a tile has all of it, and many elements of the long side, so
that short rows that follow one another in memory are read or written as one:

grid: tiles of 11 by 256
  thread: tile[j, i] = x[j, i]                      11 runs of 256
  thread: y[n // 11, n % 11] = f(tile[n % 11, n // 11])     one run of 11 * 256
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tilewright.arith.expr import Load, Var, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block, Iter, Store
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.gpu.smem_copy import copy_by_threads
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The sides of a tile in words, and the rows that the threads move at a time: by default, or else.
SIDE, ROWS, ROW_COUNTS = 32, 8, (4, 8, 16, 32)
WORD_BYTES = 4
# The bytes of a tile with a short side, the threads that copy its runs, and the shortest run.
TILE_BYTES, LEAST_THREADS, MOST_THREADS, MIN_RUN = 8192, 32, 256, 64


@dataclass(frozen=True)
class TransposedRead:
    """An array that is read with a stride: it is contiguous along `axis`.

    `width` is how many elements make a word, 1 where rows are no whole words. A tile with a short
    side has a `run` of so many elements of the other one, and vectors of `along` elements of short
    rows one after another, which are read if it `is_short` along the axis, and written if not.
    """

    buffer: str
    axis: str
    width: int
    run: int = 0
    along: int = 1
    is_short: bool = False


def transposed_read(block: Block, graph: BlockGraph, target: GpuTarget) -> TransposedRead | None:
    """The one array that a block reads transposed, if it is worth a tile."""
    last = _written_along(block, graph)
    found = []
    for load in reads_of(block):
        if uses(load, last.name) and flat_stride(load, graph.buffers[load.buffer], last.name) != 1:
            found.append(_transposed(load, block, graph, target))
    loads = [x for x in reads_of(block) if found and found[0] and x.buffer == found[0].buffer]
    return found[0] if len(found) == 1 and len(loads) == 1 else None


def _written_along(block: Block, graph: BlockGraph) -> Iter:
    """The axis along which writes are contiguous; the last one where there is none.

    Rows may be in several dimensions, with room behind them.
    """
    assert isinstance(block.body, Store)
    to = graph.buffers[block.body.buffer]
    place = Load(to.name, block.body.indices, to.dtype)
    along = (it for it in spatial(block) if flat_stride(place, to, it.name) == 1)
    return next(along, spatial(block)[-1])


def _transposed(
    load: Load, block: Block, graph: BlockGraph, target: GpuTarget
) -> TransposedRead | None:
    """Whether each index is an axis, and the last one and the last axis are long enough."""
    axes = spatial(block)
    by_name, last = {it.name: it for it in axes}, _written_along(block, graph).name
    names = [i.name if isinstance(i, Var) else "" for i in load.indices]
    if not all(name in by_name for name in names) or len({*names}) != len(names):
        return None
    sides = [as_int(by_name[name].extent) or 0 for name in (names[-1], last)]
    inner = load.mask is None and names[-1] != last
    made_here = load.buffer in {b.writes[0].buffer for b in graph.blocks}
    if not inner or made_here:
        return None
    if 0 < min(sides) < SIDE:
        return _short_sided(load, block, graph, sides, target)
    if not all(sides):
        return None
    width = WORD_BYTES // max(load.dtype.bytes, value_of(block).dtype.bytes)
    whole = width > 1 and all(side % width == 0 and side >= SIDE * width for side in sides)
    return TransposedRead(load.buffer, names[-1], width if whole else 1)


def _short_sided(
    load: Load, block: Block, graph: BlockGraph, sides: list[int], target: GpuTarget
) -> TransposedRead | None:
    """A read along a short or long axis, where rows of the short one follow one another.

    `None` where a thread writes such a row as one vector.
    """
    assert isinstance(block.body, Store)
    assert isinstance(load.indices[-1], Var)
    axis, last = load.indices[-1].name, _written_along(block, graph).name
    to = graph.buffers[block.body.buffer]
    place = Load(to.name, block.body.indices, to.dtype)
    reads_short = sides[0] < sides[1]
    rows, across = (load, last) if reads_short else (place, axis)
    follow = flat_stride(rows, graph.buffers[rows.buffer], across) == min(sides)
    widest = max(load.dtype.bytes, value_of(block).dtype.bytes)
    plain = place.indices == tuple(Var(it.name) for it in spatial(block))
    row = sides[1] * widest
    vector = row & (row - 1) == 0 and row <= VECTOR_BYTES
    if not (follow and plain) or max(sides) < MIN_RUN or vector:
        return None
    width = gcd(max(sides), max(1, WORD_BYTES // widest))
    along = gcd(max(sides) * min(sides), VECTOR_BYTES // widest)
    points = typical_extent(simplify(product(tuple(it.extent for it in spatial(block)))))
    tile = min(TILE_BYTES // widest, points // target.sm_count, max(sides) * min(sides))
    most = tile // (min(sides) * along)
    threads = max(LEAST_THREADS, min(MOST_THREADS, 1 << (max(1, most).bit_length() - 1)))
    return TransposedRead(load.buffer, axis, width, threads * along, along, reads_short)


def schedule_transpose(sch: Schedule, block: Block, read: TransposedRead) -> None:
    """Schedule a block that reads an array transposed."""
    if read.run:
        _schedule_short_sided(sch, block, read)
    else:
        _schedule_tiles(sch, block, read)


def _schedule_short_sided(sch: Schedule, block: Block, read: TransposedRead) -> None:
    """Tiles with all of a short side: in shared memory they lie as their short rows do."""
    last = _written_along(block, block_graph(sch.func)).name
    axes = [it.name for it in spatial(block)]
    if read.is_short:
        made, kept = str(sch.cache_read(block.name, read.buffer, "shared")), block.name
        (load,) = (x for x in reads_of(block) if x.buffer == read.buffer)
        places = [load.indices.index(Var(name)) for name in (last, read.axis)]
        sides, widths = [read.axis, last], [read.along, read.width]
    else:
        made, kept = block.name, str(sch.cache_write(block.name, "shared"))
        places = [axes.index(name) for name in (last, read.axis)]
        sides, widths = [read.axis, last], [read.width, read.along]
    loops = [loop_of(it) for it in spatial(block_graph(sch.func).block(kept))]
    inner = [loops[axes.index(name)] for name in sides]
    rest = [loop for loop in loops if loop not in inner]
    long = 1 if read.is_short else 0
    tiles, inner[long] = sch.split(inner[long], [None, read.run])
    sch.reorder(*rest, tiles, *inner)
    grid = str(sch.fuse(*rest, tiles)) if rest else tiles
    own = list(sch.compute_at(made, grid))
    moved = [own[n] for n in places]
    sch.reorder(*(loop for loop in own if loop not in moved), *moved)
    for pair, width in zip((moved, inner), widths, strict=True):
        copy_by_threads(sch, pair, min(MOST_THREADS, read.run // width), width)
    sch.bind(grid, "grid")


def _schedule_tiles(sch: Schedule, block: Block, read: TransposedRead) -> None:
    """Square tiles."""
    last = _written_along(block, block_graph(sch.func)).name
    loops = {it.name: loop_of(it) for it in spatial(block)}
    copy = str(sch.cache_read(block.name, read.buffer, "shared"))
    side = SIDE * read.width
    rows = sch.choose(f"{block.name}.rows", ROWS, lambda: ROW_COUNTS)
    i0, i1 = sch.split(loops.pop(read.axis), [None, side])
    j0, j1 = sch.split(loops.pop(last), [None, side])
    sch.reorder(*loops.values(), i0, j0, i1, j1)
    grid = str(sch.fuse(*loops.values(), i0, j0))
    own = list(sch.compute_at(copy, grid))
    indices = next(x for x in reads_of(block) if x.buffer == read.buffer).indices
    across = next(n for n, i in enumerate(indices) if i is Var(last))
    sch.reorder(*(loop for n, loop in enumerate(own[:-1]) if n != across), own[across], own[-1])
    _bind_tile(sch, own[across], own[-1], rows, read.width)
    _bind_tile(sch, i1, j1, rows, read.width)
    sch.bind(grid, "grid")


def _bind_tile(sch: Schedule, row: str, column: str, rows: int, width: int) -> None:
    """Threads along rows and columns; each has several rows, and a word of each."""
    part, thread, inner = sch.split(row, [None, rows, width])
    word, element = sch.split(column, [None, width])
    sch.reorder(thread, word, part, inner, element)
    for loop in (thread, word):
        sch.bind(loop, "thread")
    for loop in (part, inner):
        sch.unroll(loop)
    sch.vectorize(element)
