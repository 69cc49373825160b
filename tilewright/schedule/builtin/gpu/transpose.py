"""Transposes through tiles in shared memory, so that reads and writes are both coalesced.

grid: tiles of 32 by 32
  thread: tile[j, i] = x[j, i]          coalesced reads
  thread: y[i, j] = f(tile[j, i])       coalesced writes

Elements of less than 32 bits move in words: a tile has 32 words in a row, and as many rows as a row
has elements, of which a thread transposes a few at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Load, Var, as_int
from tilewright.ir.loop.nodes import Block, Iter, Store
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    spatial,
    uses,
    value_of,
)
from tilewright.schedule.schedule import Schedule

# The sides of a tile in words, and the rows that the threads move at a time: by default, or else.
SIDE, ROWS, ROW_COUNTS = 32, 8, (4, 8, 16, 32)
WORD_BYTES = 4


@dataclass(frozen=True)
class TransposedRead:
    """An array that is read with a stride: it is contiguous along `axis`.

    `width` is how many elements make a word, 1 where rows are no whole words.
    """

    buffer: str
    axis: str
    width: int


def transposed_read(block: Block, graph: BlockGraph) -> TransposedRead | None:
    """The one array that a block reads transposed, if it is worth a tile."""
    last = _written_along(block, graph)
    found = []
    for load in reads_of(block):
        if uses(load, last.name) and flat_stride(load, graph.buffers[load.buffer], last.name) != 1:
            found.append(_transposed(load, block, graph))
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


def _transposed(load: Load, block: Block, graph: BlockGraph) -> TransposedRead | None:
    """Whether each index is an axis, and the last one and the last axis are long enough."""
    axes = spatial(block)
    by_name, last = {it.name: it for it in axes}, _written_along(block, graph).name
    names = [i.name if isinstance(i, Var) else "" for i in load.indices]
    if not all(name in by_name for name in names) or len({*names}) != len(names):
        return None
    sides = [as_int(by_name[name].extent) or 0 for name in (names[-1], last)]
    inner = load.mask is None and names[-1] != last
    made_here = load.buffer in {b.writes[0].buffer for b in graph.blocks}
    if not inner or min(sides) < SIDE or made_here:
        return None
    width = WORD_BYTES // max(load.dtype.bytes, value_of(block).dtype.bytes)
    whole = width > 1 and all(side % width == 0 and side >= SIDE * width for side in sides)
    return TransposedRead(load.buffer, names[-1], width if whole else 1)


def schedule_transpose(sch: Schedule, block: Block, read: TransposedRead) -> None:
    """Schedule a block that reads an array transposed."""
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
