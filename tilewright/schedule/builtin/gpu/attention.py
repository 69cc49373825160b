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
`ops/attention/tiled_loops.py`. Where tiles of keys and values are whole, and a block has two groups
of warps that multiply at once, threads apart have them copied, and blocks stay: see
`codegen/gpu/warp_specialized.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.arith.expr import Load, Var, as_int, const
from tilewright.arith.simplify import prove, simplify
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
from tilewright.schedule.analysis.blocks import facts_of, loop_of, reads_of, reductions
from tilewright.schedule.analysis.gemm import ProductRoles, operand_load, product_roles
from tilewright.schedule.builtin.cpu.attention import tasks_loop
from tilewright.schedule.builtin.gpu.thread_per_element import own_loops
from tilewright.schedule.intrin.nvidia import fragment_shuffle, wgmma
from tilewright.schedule.intrin.nvidia.mma import DEPTH, PIECE, ROWS, mma_names
from tilewright.schedule.intrin.nvidia.tma import bulk_name
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# How far copies of keys and values run ahead, this step's among them: further where a block has one
# part of many keys, and where that covers a whole walk; such copies may take so many bytes.
STAGES, MORE_STAGES = 2, 3
ROOM = 48 << 10
# The rows of an instruction of four warps, and how many such groups there are where other threads
# copy, which then run so many steps ahead.
GROUPED = 64
GROUPS = 2
APART_STAGES = 2
# Bits of a register.
WORD = 32
# The rows that an instruction leaves to one thread are so far apart.
ROW_STEP = 8


@dataclass(frozen=True)
class _Roles:
    """The blocks of attention by name: products, and the copies in shared memory that they read."""

    products: frozenset[str]
    copies: frozenset[str]
    # Copies whose rows lie across the sum.
    across: frozenset[str]
    threads: int
    # Whether four warps multiply at once.
    grouped: bool
    # What is copied in a step.
    step_bytes: int
    # What each step of the walk takes over, see `schedule/intrin/nvidia/wgmma.py`.
    kept: frozenset[str]
    # Whether threads apart copy whole tiles.
    apart: bool
    # Results that lanes hand around before they are written.
    handed: frozenset[str]


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
    if not behind and _is_apart(sch, inside, roles, target):
        # Nothing branches between the products of a turn.
        roles = replace(roles, apart=True, kept=frozenset(), copies=_copied(sch, inside, roles))
    outer = [loop.name for loop in loops_above(sch.func, inside[0].name)]
    outer = outer[: outer.index(tasks.name) + 1]
    for block in inside:
        if block.name in roles.products:
            _multiply(sch, block, roles)
        elif block.name in roles.copies:
            _copy_tile(sch, block, roles)
        elif _joins_lanes(block):
            _join_lanes(sch, block)
        elif block.writes[0].buffer in roles.handed:
            _hand_around(sch, block)
        else:
            _deal_out(sch, block, kept, roles)
    grid = _bind_grid(sch, outer)
    if roles.apart:
        sch.annotate(grid, PERSISTENT.key, target.sm_count)
        sch.annotate(grid, MIN_BLOCKS_PER_SM.key, 1)
        sch.annotate(walk.name, PIPELINE_STAGES.key, APART_STAGES)
        sch.annotate(walk.name, WARP_SPECIALIZED.key, 1)
        return
    ahead = MORE_STAGES if behind or _is_short(walk, roles) else STAGES
    sch.annotate(walk.name, PIPELINE_STAGES.key, ahead)
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


def _is_apart(sch: Schedule, inside: list[Block], roles: _Roles, target: GpuTarget) -> bool:
    """Whether threads apart can have all that the products of a walk read copied, tile by tile."""
    # Queries, which may be copied as well, take no more room than keys.
    room = roles.step_bytes * 3 // 2 * APART_STAGES < target.max_shared_per_block
    groups = roles.threads == GROUPS * GROUPED // ROWS * WARP_SIZE
    copies = [b for b in inside if b.name in roles.copies]
    return roles.grouped and groups and room and all(_is_whole(sch, b) for b in copies)


def _copied(sch: Schedule, inside: list[Block], roles: _Roles) -> frozenset[str]:
    """All blocks that threads apart do: what is copied in each step, and queries where they can."""
    found = (_product_of(b) for b in inside if b.name in roles.products)
    left = {operand_load(r.left).buffer for r in found if r is not None}
    more = (b for b in inside if b.writes[0].buffer in left and _is_whole(sch, b))
    return roles.copies | {b.name for b in more}


def _is_whole(sch: Schedule, block: Block) -> bool:
    """Whether a block copies tiles of a matrix in memory, whose rows begin at pieces."""
    assert isinstance(block.body, Store)
    load = block.body.value
    if not isinstance(load, Load) or load.mask is not None or len(block.iters) < 2:
        return False
    row, column = (Var(it.name) for it in block.iters[-2:])
    *rest, last = load.indices
    facts = facts_of(sch.func)
    (moving,) = [i for i in rest if row.name in free_vars(i)] or [column]
    within = {row.name, column.name}
    others = [simplify(moving - row), *(i for i in rest if i is not moving)]
    width = facts.buffers[load.buffer].shape[-1]
    given = load.buffer in {p.name for p in sch.func.params}
    whole = given and last is column and not any(free_vars(i) & within for i in others)
    return whole and prove((width % PIECE).eq(0))


def _bind_grid(sch: Schedule, outer: list[str]) -> str:
    grid = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    sch.bind(grid, "grid")
    return grid


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
    found = [r for b in products if (r := _product_of(b)) is not None]
    read = {operand_load(r.right).buffer for r in found}
    across = frozenset(
        x.buffer
        for r in found
        for x in (operand_load(r.right),)
        if x.indices[-1] is not Var(r.depth[-1].name)
    )
    params = {p.name for p in sch.func.params}
    copies = [
        b
        for b in inside
        if b.writes[0].buffer in read and {r.buffer for r in reads_of(b)} <= params
    ]
    sides = [[_extent(sch, loop) for loop in own_loops(sch, b)] for b in products]
    grouped = any(s.m == GROUPED for s in target.mma_shapes) and all(map(_fits, sides))
    threads = sides[0][0] // ROWS * WARP_SIZE
    # Registers are given away only where the fragments of both products have as many.
    kept = lasting if len({depth for *_, depth in sides}) == 1 else frozenset()
    product_names, copy_names = (frozenset(b.name for b in x) for x in (products, copies))
    # What results are copied from, and is a copy itself.
    outs = [b for b in inside if b.writes[0].buffer in facts_of(sch.func).outputs]
    handed = frozenset(x for x in map(_copy_of, outs) if x in set(map(_written_copy, inside)))
    buffers = facts_of(sch.func).buffers
    sizes = (
        prod(_extent(sch, loop) for loop in own_loops(sch, b))
        * buffers[b.writes[0].buffer].dtype.bytes
        for b in copies
    )
    about = product_names, copy_names, across, threads, grouped, sum(sizes), kept
    return _Roles(*about, apart=False, handed=handed)


def _copy_of(block: Block) -> str:
    """The buffer that a block only copies, "" if it computes."""
    value = block.body.value if isinstance(block.body, Store) else None
    return value.buffer if isinstance(value, Load) and value.mask is None else ""


def _written_copy(block: Block) -> str:
    """The buffer that a block copies something to, "" if it computes."""
    return block.writes[0].buffer if _copy_of(block) else ""


def _fits(sides: list[int]) -> bool:
    """Whether four warps can do a product of these rows, columns and depth at once."""
    rows, columns, depth = sides
    return rows % GROUPED == 0 and depth % wgmma.DEPTH == 0 and columns in wgmma.COLUMNS


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


def _copy_tile(sch: Schedule, block: Block, roles: _Roles) -> None:
    """Copy a tile of an operand to shared memory, neighbouring pieces by neighbouring threads."""
    buffer = block.writes[0].buffer
    sch.set_scope(buffer, "shared")
    if roles.apart:
        _copy_whole(sch, block, along=buffer not in roles.across)
        return
    loops = own_loops(sch, block)
    part, thread, piece = sch.split(sch.fuse(*loops), [None, roles.threads, PIECE])
    sch.reorder(thread, part, piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    sch.vectorize(piece)


def _copy_whole(sch: Schedule, block: Block, along: bool) -> None:
    """Have a tile copied by the engine: of what lies across a sum, the rows that are added."""
    rows, columns = own_loops(sch, block)
    dtype = str(facts_of(sch.func).buffers[block.writes[0].buffer].dtype)
    high, wide = _extent(sch, rows), _extent(sch, columns)
    if not along:
        part, rows = sch.split(rows, [None, wgmma.DEPTH])
        sch.unroll(part)
        high = wgmma.DEPTH
    sch.tensorize(sch.blockize(rows), bulk_name(dtype, high, wide))


def _rows_of(sch: Schedule, rows: str) -> tuple[str, str, str]:
    """Warps, the rows that the threads of one have, and how many each thread has."""
    y, half, row = sch.split(rows, [None, ROWS // ROW_STEP, ROW_STEP])
    return y, row, half


def _join_lanes(sch: Schedule, block: Block) -> None:
    """What the lanes of a row have becomes one value, which all of them have."""
    rows, lane = own_loops(sch, block)
    y, row, half = _rows_of(sch, rows)
    sch.reorder(y, row, half, lane)
    for loop in (y, row):
        sch.bind(loop, "thread")
    sch.bind(lane, "allreduce")
    sch.unroll(half)
    sch.set_scope(block.writes[0].buffer, "register")


def _hand_around(sch: Schedule, block: Block) -> None:
    """Results among the lanes of a row, until each has neighbours."""
    rows, columns = own_loops(sch, block)
    buffer = facts_of(sch.func).buffers[block.writes[0].buffer]
    y, row = sch.split(rows, [None, ROWS])
    sch.bind(y, "warp")
    sch.set_scope(buffer.name, "fragment")
    name = fragment_shuffle.pairs_name(str(buffer.dtype), ROWS, _extent(sch, columns))
    sch.tensorize(sch.blockize(row), name)


def _deal_out(sch: Schedule, block: Block, kept: set[str], roles: _Roles) -> None:
    """Formulas on rows, by every lane, and on the elements that a lane has."""
    bound = {v for it in block.iters for v in free_vars(it.binding)}
    # A loop that numbers nothing only says whether there is something to do.
    rows, columns, *terms = (loop for loop in own_loops(sch, block) if loop in bound)
    y, row, half = _rows_of(sch, rows)
    inner, lane = [half, *terms], columns
    elements = not terms and _extent(sch, columns) != LANES
    if elements:
        wide = fragment_shuffle.WIDE if {r.buffer for r in block.reads} & roles.handed else PAIR
        group, lane, pair = sch.split(columns, [None, LANES, wide])
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
