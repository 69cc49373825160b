"""What a piece of code reads and writes, as boxes of buffers; blocks with their signature filled.

    for r in serial(4) { C[vi] += A[vi * 4 + r] }     reads C[vi], A[vi * 4 : 4] writes C[vi]

A loop inside the code widens the range of every index that uses it. An index that cannot be bounded
(it depends on data) covers its whole dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.arith.bounds import lower, upper
from tilewright.arith.expr import TRUE, Binary, Expr, Load, const
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads, subexpressions, substitute
from tilewright.core.errors import LoweringError
from tilewright.ir.loop.nodes import (
    Alloc,
    Annotations,
    Block,
    Buffer,
    For,
    If,
    Iter,
    Region,
    Seq,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.walk import map_region, own_expressions

ZERO, ONE = const(0), const(1)
Extents = Mapping[str, Expr]
Regions = tuple[tuple[Region, ...], tuple[Region, ...]]


def regions_of(body: Stmt, buffers: Mapping[str, Buffer] | None = None) -> Regions:
    """The regions that `body` reads and writes, each once, its own allocations left out.

    `buffers` is needed only where an index depends on data and so covers a whole dimension.
    """
    reads: dict[Region, None] = {}
    writes: dict[Region, None] = {}
    for region, is_write in _touched(body, {}, dict(buffers or {}), frozenset()):
        (writes if is_write else reads)[region] = None
    return tuple(reads), tuple(writes)


def make_block(
    name: str,
    iters: tuple[Iter, ...],
    body: Stmt,
    init: Stmt | None = None,
    predicate: Expr = TRUE,
    *,
    annotations: Annotations = (),
    buffers: Mapping[str, Buffer] | None = None,
) -> Block:
    """A block with `reads` and `writes` derived from its code.

    What `init` starts and `body` carries on is a write, not a read.
    """
    reads, writes = regions_of(body, buffers)
    if init is not None:
        init_reads, init_writes = regions_of(init, buffers)
        carried = {r.buffer for r in init_writes}
        reads = tuple(r for r in _union(init_reads, reads) if r.buffer not in carried)
        writes = _union(writes, init_writes)
    return Block(name, iters, reads, writes, body, init, predicate, annotations)


def _union(a: tuple[Region, ...], b: tuple[Region, ...]) -> tuple[Region, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def _touched(
    stmt: Stmt, extents: Extents, known: dict[str, Buffer], hidden: frozenset[str]
) -> Iterator[tuple[Region, bool]]:
    """Regions touched by `stmt`; `extents` are the loops inside, `hidden` its own allocations."""
    if isinstance(stmt, Alloc):
        known[stmt.buffer.name] = stmt.buffer
        hidden = hidden | {stmt.buffer.name}
    for region, is_write in _own_regions(stmt):
        if region.buffer not in hidden:
            yield _visible(_widened(region, extents, known), hidden, known), is_write
    match stmt:
        case Seq(stmts):
            children: tuple[Stmt, ...] = stmts
        case For(name, extent, _, body):
            children, extents = (body,), {**extents, name: extent}
        case If(_, then, orelse):
            children = (then,) if orelse is None else (then, orelse)
        case Alloc(_, body):
            children = (body,)
        case _:
            children = ()
    for child in children:
        yield from _touched(child, extents, known, hidden)


def _own_regions(stmt: Stmt) -> Iterator[tuple[Region, bool]]:
    if isinstance(stmt, Block):
        bound = {it.name: it.binding for it in stmt.iters}
        yield from ((map_region(r, lambda e: substitute(e, bound)), False) for r in stmt.reads)
        yield from ((map_region(r, lambda e: substitute(e, bound)), True) for r in stmt.writes)
        return
    if isinstance(stmt, Tile):
        yield from ((r, False) for r in stmt.srcs)
        yield stmt.dst, True
    for root in own_expressions(stmt):
        yield from ((_point(load), False) for load in loads(root))
    if isinstance(stmt, Store):
        yield _point(stmt), True


def _point(access: Load | Store) -> Region:
    return Region(access.buffer, tuple((i, ONE) for i in access.indices))


def _widened(region: Region, extents: Extents, known: Mapping[str, Buffer]) -> Region:
    if not extents:
        return region
    ranges: list[tuple[Expr, Expr]] = []
    for dim, (start, extent) in enumerate(region.ranges):
        # Part of a tile that lies in one packed block: the division is by more than the loops run.
        start = simplify(start, extents) if _divides(start) else start
        # The extent may itself depend on loops, where a block reads more in some iterations.
        low, end = lower(start, extents), upper(start + extent, extents)
        if low is None or end is None:
            ranges.append((ZERO, _dimension(region.buffer, dim, known)))
        else:
            ranges.append((simplify(low), simplify(end - low)))
    return Region(region.buffer, tuple(ranges))


def _visible(region: Region, hidden: frozenset[str], known: Mapping[str, Buffer]) -> Region:
    """A region as it is told outside: an index read from an own allocation may be any."""

    def is_hidden(e: Expr) -> bool:
        return any(load.buffer in hidden for load in loads(e))

    if not hidden or not any(is_hidden(e) for r in region.ranges for e in r):
        return region
    ranges = (
        (ZERO, _dimension(region.buffer, dim, known)) if any(map(is_hidden, given)) else given
        for dim, given in enumerate(region.ranges)
    )
    return Region(region.buffer, tuple(ranges))


def _divides(e: Expr) -> bool:
    return any(isinstance(x, Binary) and x.op in DIVISIONS for x in subexpressions(e))


def _dimension(buffer: str, dim: int, known: Mapping[str, Buffer]) -> Expr:
    if buffer not in known:
        raise LoweringError(
            "region.unbounded",
            f"index {dim} of {buffer!r} depends on data, so its region is the whole dimension, "
            "and the buffer's shape was not given",
        )
    return known[buffer].shape[dim]
