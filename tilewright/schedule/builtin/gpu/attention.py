"""Attention by instructions on matrices: a block of threads has some rows of queries.

    grid: (batch, row tile)
      thread (y, row, lane): a = queries                 fragments
      thread (y, row, lane): m, l, o = -inf, 0, 0        registers
      for keys, copies some steps ahead
        threads: kt, vt = keys, values                   shared, 16 bytes at a time
        warp (y): s = a * kt                             fragments
        thread (y, row, lane): masks, peaks, weights     what a lane has of each row
        warp (y): o += w * vt                            weights stay where they are
      thread (y, row, lane): result = o / sum

Of the scores nothing leaves the registers. The loops, with the lanes of each row, are those of
`ops/attend_tiles.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.arith.expr import Var, as_int, const
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, For, Func, Store
from tilewright.ir.loop.threads import WARP_SIZE
from tilewright.ir.loop.walk import blocks, loops, loops_above
from tilewright.ops.attend_tiles import LANES, PAIR
from tilewright.schedule.builtin.attention import tasks_loop
from tilewright.schedule.builtin.gpu.points import own_loops
from tilewright.schedule.builtin.structure import facts_of, loop_of, reads_of, reductions
from tilewright.schedule.intrin import wgmma
from tilewright.schedule.intrin.mma import DEPTH, PIECE, ROWS, mma_names
from tilewright.schedule.products import ProductRoles, operand_load, product_roles
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# How far copies of keys and values run ahead, this step's among them: further where a block has one
# part of many keys, and where that covers a whole walk; such copies may take so many bytes.
STAGES, MORE_STAGES = 2, 3
ROOM = 48 << 10
# The rows of an instruction of four warps.
GROUPED = 64
# Bits of a register.
WORD = 32
# The rows that an instruction leaves to one thread are so far apart.
APART = 8


@dataclass(frozen=True)
class _Roles:
    """The blocks of attention by name: products, and the copies in shared memory that they read."""

    products: frozenset[str]
    copies: frozenset[str]
    threads: int
    # Whether four warps multiply at once.
    grouped: bool
    # What is copied in a step.
    step_bytes: int
    # What each step of the walk takes over, see `wgmma.py`.
    kept: frozenset[str]


def tiled_tasks(func: Func) -> For | None:
    """The loop over blocks of rows that are dealt out to lanes, `None` if there is none."""
    tasks = tasks_loop(func)
    return tasks if tasks is not None and any(map(_joins_lanes, blocks(tasks))) else None


def _joins_lanes(block: Block) -> bool:
    """Whether a block combines what lanes have, the last axis of what it reads."""
    last = [load.indices[-1] for load in reads_of(block)]
    axes = [it for it in reductions(block) if as_int(it.extent) == LANES]
    return bool(axes) and last == [Var(axes[0].name)]


def schedule_tiled_attention(sch: Schedule, tasks: For, target: GpuTarget) -> None:
    """Schedule the nests in the loop `tasks`."""
    inside = list(blocks(tasks))
    behind = [b for b in blocks(sch.func.body) if b.name not in {b.name for b in inside}]
    # What stays in memory: results, and parts of them.
    kept = {*facts_of(sch.func).outputs, *(x.buffer for b in behind for x in reads_of(b))}
    walk = next(loop for loop in loops(tasks.body) if len(list(blocks(loop))) > 1)
    roles = _roles(sch, inside, _lasting(inside, walk), target)
    outer = [loop.name for loop in loops_above(sch.func, inside[0].name)]
    outer = outer[: outer.index(tasks.name) + 1]
    for block in inside:
        if block.name in roles.products:
            _multiply(sch, block, roles)
        elif block.name in roles.copies:
            _copy_tile(sch, block, roles.threads)
        elif _joins_lanes(block):
            _join_lanes(sch, block)
        else:
            _deal_out(sch, block, kept)
    _bind_grid(sch, outer)
    ahead = MORE_STAGES if behind or _is_short(walk, roles) else STAGES
    sch.annotate(walk.name, "stages", ahead)
    if behind:
        _put_together(sch, behind)


def _is_short(walk: For, roles: _Roles) -> bool:
    """Whether all steps of a walk can be copied before its first one."""
    steps = as_int(walk.extent)
    return steps == MORE_STAGES - 1 and roles.step_bytes * MORE_STAGES <= ROOM


def _lasting(inside: list[Block], walk: For) -> frozenset[str]:
    """What is made before a walk along the keys, if some steps of it do more than others."""
    steps = list(blocks(walk))
    counted = {v for b in steps for it in b.iters for v in free_vars(it.binding)}
    if all(loop.name in counted for loop in loops(walk.body)):
        return frozenset()
    own = {b.name for b in steps}
    return frozenset(b.writes[0].buffer for b in inside if b.name not in own)


def _bind_grid(sch: Schedule, outer: list[str]) -> None:
    sch.bind(sch.fuse(*outer) if len(outer) > 1 else outer[0], "grid")


def _put_together(sch: Schedule, behind: list[Block]) -> None:
    """All parts of a result: a thread has a column of it."""
    own = own_loops(sch, behind[0])
    *outer, column = (
        loop.name for loop in loops_above(sch.func, behind[0].name) if loop.name not in own
    )
    for block in behind:
        for part in own_loops(sch, block):
            sch.decompose_reduction(block.name, part)
            sch.unroll(part)
    _bind_grid(sch, outer)
    sch.bind(column, "thread")


def _roles(
    sch: Schedule, inside: list[Block], lasting: frozenset[str], target: GpuTarget
) -> _Roles:
    products = [b for b in inside if _product_of(b) is not None]
    read = {operand_load(found.right).buffer for b in products if (found := _product_of(b))}
    params = {p.name for p in sch.func.params}
    copies = [
        b
        for b in inside
        if b.writes[0].buffer in read and {r.buffer for r in reads_of(b)} <= params
    ]
    sides = [[_extent(sch, loop) for loop in own_loops(sch, b)] for b in products]
    grouped = any(s.m == GROUPED for s in target.matrix_shapes) and all(map(_fits, sides))
    threads = sides[0][0] // ROWS * WARP_SIZE
    # Registers are given away only where the fragments of both products have as many.
    kept = lasting if len({depth for *_, depth in sides}) == 1 else frozenset()
    product_names, copy_names = (frozenset(b.name for b in x) for x in (products, copies))
    buffers = facts_of(sch.func).buffers
    sizes = (
        prod(_extent(sch, loop) for loop in own_loops(sch, b))
        * buffers[b.writes[0].buffer].dtype.bytes
        for b in copies
    )
    return _Roles(product_names, copy_names, threads, grouped, sum(sizes), kept)


def _fits(sides: list[int]) -> bool:
    """Whether four warps can do a product of these rows, columns and depth at once."""
    rows, columns, depth = sides
    whole = rows % GROUPED == 0 and depth % wgmma.DEPTH == 0 and columns in wgmma.COLUMNS
    # The columns of values are in panels of as many keys as one statement adds.
    return whole and wgmma.DEPTH in (columns, depth)


def _product_of(block: Block) -> ProductRoles | None:
    """The roles of a product, also of one that is added to what is there."""
    if block.init is None and isinstance(block.body, Store) and reductions(block):
        start = replace(block.body, value=const(0, block.body.value.dtype))
        return product_roles(replace(block, init=start))
    return product_roles(block)


def _extent(sch: Schedule, loop: str) -> int:
    found = as_int(next(f.extent for f in loops(sch.func.body) if f.name == loop))
    assert found is not None
    return found


def _multiply(sch: Schedule, block: Block, roles: _Roles) -> None:
    """A product: sixteen rows a warp, all columns."""
    name = block.name
    rows, columns, depth = own_loops(sch, block)
    found = _product_of(block)
    assert found is not None
    left, right = operand_load(found.left), operand_load(found.right)
    along = right.indices[-1] is Var(found.depth[-1].name)
    order = ("n" if left.buffer in roles.copies else "r") + ("t" if along else "n")
    dtype, wide = str(left.dtype), _extent(sch, columns)
    if roles.grouped:
        held = "k" if left.buffer in roles.kept else order[0]
        zero, add = wgmma.wgmma_names(dtype, wide, order[1], held)
    else:
        zero, add = mma_names(dtype, ROWS, wide, order)
    y, m = sch.split(rows, [None, ROWS])
    k, step = sch.split(depth, [None, wgmma.DEPTH if roles.grouped else DEPTH])
    sch.reorder(y, k, m, columns, step)
    sch.bind(y, "warp")
    sch.unroll(k)
    if block.init is not None:
        init = sch.decompose_reduction(name, k)
        sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.set_scope(block.writes[0].buffer, "fragment")
    sch.tensorize(sch.blockize(m), add)


def _copy_tile(sch: Schedule, block: Block, threads: int) -> None:
    """Copy a tile of an operand to shared memory, neighbouring pieces by neighbouring threads."""
    sch.set_scope(block.writes[0].buffer, "shared")
    part, thread, piece = sch.split(sch.fuse(*own_loops(sch, block)), [None, threads, PIECE])
    sch.reorder(thread, part, piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    sch.vectorize(piece)


def _rows_of(sch: Schedule, rows: str) -> tuple[str, str, str]:
    """Warps, the rows that the threads of one have, and how many each thread has."""
    y, half, row = sch.split(rows, [None, ROWS // APART, APART])
    return y, row, half


def _join_lanes(sch: Schedule, block: Block) -> None:
    """What the lanes of a row have becomes one value, which all of them have."""
    rows, lane = own_loops(sch, block)
    y, row, half = _rows_of(sch, rows)
    sch.reorder(y, row, half, lane)
    for loop in (y, row):
        sch.bind(loop, "thread")
    sch.bind(lane, "combine")
    sch.unroll(half)
    sch.set_scope(block.writes[0].buffer, "register")


def _deal_out(sch: Schedule, block: Block, kept: set[str]) -> None:
    """Formulas on rows, by every lane, and on the elements that a lane has."""
    bound = {v for it in block.iters for v in free_vars(it.binding)}
    # A loop that numbers nothing only says whether there is something to do.
    rows, columns, *terms = (loop for loop in own_loops(sch, block) if loop in bound)
    y, row, half = _rows_of(sch, rows)
    inner, lane = [half, *terms], columns
    elements = not terms and _extent(sch, columns) != LANES
    if elements:
        group, lane, pair = sch.split(columns, [None, LANES, PAIR])
        inner += [group, pair]
    sch.reorder(y, row, lane, *inner)
    for loop in (y, row, lane):
        sch.bind(loop, "thread")
    if reductions(block):
        sch.decompose_reduction(block.name, loop_of(reductions(block)[0]))
    for loop in inner[:-1]:
        sch.unroll(loop)
    # What is in memory, or narrow, moves in pairs.
    facts = facts_of(sch.func)
    buffer = facts.buffers[block.writes[0].buffer]
    params = {p.name for p in sch.func.params} | kept
    pairs = buffer.dtype.bits < WORD or {r.buffer for r in (*block.reads, *block.writes)} & params
    (sch.vectorize if elements and pairs else sch.unroll)(inner[-1])
    if buffer.name not in kept:
        sch.set_scope(buffer.name, "fragment" if elements else "register")
