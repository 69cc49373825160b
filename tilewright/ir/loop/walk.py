"""Walking and rebuilding loop functions: substitution, finding things by name.

Rebuilding returns the same object where nothing changed, so a caller sees with `is` whether a
rewrite did anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

from tilewright.arith.expr import Expr, Load
from tilewright.arith.walk import loads, substitute
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import (
    Alloc,
    Await,
    Barrier,
    Block,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    Iter,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Role,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)

T = TypeVar("T")
StmtMap = Callable[[Stmt], Stmt]
ExprMap = Callable[[Expr], Expr]
Path = tuple[Stmt, ...]


def _keep(x: T) -> T:
    return x


def _each(items: tuple[T, ...], f: Callable[[T], T]) -> tuple[T, ...]:
    new = tuple([f(x) for x in items])
    return items if all(map(is_, new, items)) else new


def _optional(x: T | None, f: Callable[[T], T]) -> T | None:
    return None if x is None else f(x)


def map_buffer(b: Buffer, f: ExprMap) -> Buffer:
    """`b` with `f` applied to its dimensions."""
    shape = _each(b.shape, f)
    return b if shape is b.shape else Buffer(b.name, b.dtype, shape, b.scope)


def map_region(r: Region, f: ExprMap) -> Region:
    """`r` with `f` applied to the starts and extents."""

    def both(pair: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        start, extent = f(pair[0]), f(pair[1])
        return pair if start is pair[0] and extent is pair[1] else (start, extent)

    ranges = _each(r.ranges, both)
    return r if ranges is r.ranges else Region(r.buffer, ranges)


def map_iter(it: Iter, f: ExprMap) -> Iter:
    """`it` with `f` applied to its extent and binding."""
    extent, binding = f(it.extent), f(it.binding)
    if extent is it.extent and binding is it.binding:
        return it
    return Iter(it.name, it.kind, extent, binding)


def _map_seq(s: Seq, fs: StmtMap, fe: ExprMap) -> Stmt:
    stmts = _each(s.stmts, fs)
    return s if stmts is s.stmts else Seq(stmts)


def _map_for(s: For, fs: StmtMap, fe: ExprMap) -> Stmt:
    extent, body = fe(s.extent), fs(s.body)
    if extent is s.extent and body is s.body:
        return s
    return For(s.name, extent, s.kind, body, s.annotations)


def _map_if(s: If, fs: StmtMap, fe: ExprMap) -> Stmt:
    cond, then, orelse = fe(s.cond), fs(s.then), _optional(s.orelse, fs)
    if cond is s.cond and then is s.then and orelse is s.orelse:
        return s
    return If(cond, then, orelse)


def _map_store(s: Store, fs: StmtMap, fe: ExprMap) -> Stmt:
    indices, value, mask = _each(s.indices, fe), fe(s.value), _optional(s.mask, fe)
    if indices is s.indices and value is s.value and mask is s.mask:
        return s
    return Store(s.buffer, indices, value, mask)


def _map_alloc(s: Alloc, fs: StmtMap, fe: ExprMap) -> Stmt:
    buffer, body = map_buffer(s.buffer, fe), fs(s.body)
    return s if buffer is s.buffer and body is s.body else Alloc(buffer, body)


def _map_block(s: Block, fs: StmtMap, fe: ExprMap) -> Stmt:
    iters = _each(s.iters, lambda it: map_iter(it, fe))
    reads = _each(s.reads, lambda r: map_region(r, fe))
    writes = _each(s.writes, lambda r: map_region(r, fe))
    body, init, predicate = fs(s.body), _optional(s.init, fs), fe(s.predicate)
    new: tuple[Any, ...] = (iters, reads, writes, body, init, predicate)
    old: tuple[Any, ...] = (s.iters, s.reads, s.writes, s.body, s.init, s.predicate)
    if all(a is b for a, b in zip(new, old, strict=True)):
        return s
    return Block(s.name, iters, reads, writes, body, init, predicate, s.annotations)


def _map_tile(s: Tile, fs: StmtMap, fe: ExprMap) -> Stmt:
    dst = map_region(s.dst, fe)
    srcs = _each(s.srcs, lambda r: map_region(r, fe))
    return s if dst is s.dst and srcs is s.srcs else Tile(s.op, dst, srcs, s.intrinsic)


def _map_let(s: Let, fs: StmtMap, fe: ExprMap) -> Stmt:
    value, body = fe(s.value), fs(s.body)
    return s if value is s.value and body is s.body else Let(s.name, value, body)


def _map_roles(s: Roles, fs: StmtMap, fe: ExprMap) -> Stmt:
    def role(r: Role) -> Role:
        body = fs(r.body)
        return r if body is r.body else replace(r, body=body)

    roles = _each(s.roles, role)
    return s if roles is s.roles else Roles(roles)


def _map_init(s: MbarrierInit, fs: StmtMap, fe: ExprMap) -> Stmt:
    barrier = map_region(s.barrier, fe)
    return s if barrier is s.barrier else MbarrierInit(barrier, s.count)


def _map_arrive(s: MbarrierArrive, fs: StmtMap, fe: ExprMap) -> Stmt:
    barrier, mask = map_region(s.barrier, fe), _optional(s.mask, fe)
    return s if barrier is s.barrier and mask is s.mask else MbarrierArrive(barrier, mask)


def _map_wait(s: MbarrierWait, fs: StmtMap, fe: ExprMap) -> Stmt:
    barrier, parity = map_region(s.barrier, fe), fe(s.parity)
    return s if barrier is s.barrier and parity is s.parity else MbarrierWait(barrier, parity)


def _map_signal(s: Signal, fs: StmtMap, fe: ExprMap) -> Stmt:
    flag = map_region(s.flag, fe)
    return s if flag is s.flag else Signal(flag)


def _map_await(s: Await, fs: StmtMap, fe: ExprMap) -> Stmt:
    flag, count = map_region(s.flag, fe), fe(s.count)
    return s if flag is s.flag and count is s.count else Await(flag, count)


_MAP: dict[type, Callable[..., Stmt]] = {
    Seq: _map_seq,
    For: _map_for,
    If: _map_if,
    Store: _map_store,
    Alloc: _map_alloc,
    Block: _map_block,
    Tile: _map_tile,
    Let: _map_let,
    Roles: _map_roles,
    MbarrierInit: _map_init,
    MbarrierArrive: _map_arrive,
    MbarrierWait: _map_wait,
    Signal: _map_signal,
    Await: _map_await,
    **dict.fromkeys((Barrier, CpAsyncCommit, CpAsyncWait), lambda s, fs, fe: s),
}


def map_stmt(stmt: Stmt, f_stmt: StmtMap = _keep, f_expr: ExprMap = _keep) -> Stmt:
    """`stmt` with `f_stmt` applied to each direct child and `f_expr` to its own expressions."""
    return _MAP[type(stmt)](stmt, f_stmt, f_expr)


def map_exprs(stmt: Stmt, f: ExprMap) -> Stmt:
    """`stmt` with `f` applied to every expression at any depth."""
    return map_stmt(stmt, lambda s: map_exprs(s, f), f)


def rewrite_stmts(stmt: Stmt, f: Callable[[Stmt], Stmt | None]) -> Stmt:
    """Rebuild bottom-up; `f` gives a replacement for a rebuilt statement, or `None` to keep it."""
    rebuilt = map_stmt(stmt, lambda s: rewrite_stmts(s, f))
    replaced = f(rebuilt)
    return rebuilt if replaced is None else replaced


def seq(*stmts: Stmt) -> Stmt:
    """Statements in order, nested sequences flattened; one statement is itself."""
    flat: list[Stmt] = []
    for s in stmts:
        flat += s.stmts if isinstance(s, Seq) else (s,)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def substitute_stmt(stmt: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """`stmt` with variables replaced by name everywhere; names are unique, so none is shadowed."""
    memo: dict[Expr, Expr] = {}
    return map_exprs(stmt, lambda e: substitute(e, values, memo)) if values else stmt


def child_stmts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The direct children of `stmt`, in the order in which they run."""
    return _CHILD_STMTS[type(stmt)](stmt)


_CHILD_STMTS: dict[type, Callable[..., tuple[Stmt, ...]]] = {
    Seq: lambda s: s.stmts,
    For: lambda s: (s.body,),
    If: lambda s: (s.then,) if s.orelse is None else (s.then, s.orelse),
    Store: lambda s: (),
    Alloc: lambda s: (s.body,),
    Block: lambda s: (s.body,) if s.init is None else (s.init, s.body),
    Tile: lambda s: (),
    Let: lambda s: (s.body,),
    Roles: lambda s: tuple(role.body for role in s.roles),
    **dict.fromkeys(
        (
            Barrier,
            CpAsyncCommit,
            CpAsyncWait,
            MbarrierInit,
            MbarrierArrive,
            MbarrierWait,
            Signal,
            Await,
        ),
        lambda s: (),
    ),
}


def statements_in(stmt: Stmt) -> Iterator[Stmt]:
    """Every statement at any depth, `stmt` first, in order; faster than `statements`."""
    left = [stmt]
    while left:
        s = left.pop()
        yield s
        left.extend(reversed(_CHILD_STMTS[type(s)](s)))


def statements(stmt: Stmt, path: Path = ()) -> Iterator[tuple[Path, Stmt]]:
    """Every statement at any depth with the statements around it (outermost first), in order."""
    left = [(path, stmt)]
    while left:
        around, s = left.pop()
        yield around, s
        children = child_stmts(s)
        if children:
            inner = (*around, s)
            left += [(inner, child) for child in reversed(children)]


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in `stmt` itself: extents, conditions, indices, regions."""
    match stmt:
        case For(_, extent):
            return (extent,)
        case If(cond):
            return (cond,)
        case Store(_, indices, value, mask):
            return (*indices, value) if mask is None else (*indices, value, mask)
        case Alloc(buffer):
            return buffer.shape
        case Block():
            domains = tuple(e for it in stmt.iters for e in (it.extent, it.binding))
            return (*domains, *_region_exprs(stmt.reads + stmt.writes), stmt.predicate)
        case Let(_, value):
            return (value,)
    return _synchronization_exprs(stmt)


def _synchronization_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    further: tuple[Expr | None, ...] = ()
    match stmt:
        case MbarrierWait(_, parity):
            further = (parity,)
        case MbarrierArrive(_, mask):
            further = (mask,)
        case Await(_, count):
            further = (count,)
    reads, writes = own_regions(stmt)
    return (*_region_exprs((*writes, *reads)), *(e for e in further if e is not None))


def own_regions(stmt: Stmt) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """What a tile, or a statement that synchronizes, reads and writes itself."""
    match stmt:
        case Tile(_, dst, srcs):
            return srcs, (dst,)
        case MbarrierInit(barrier) | MbarrierArrive(barrier):
            return (), (barrier,)
        case MbarrierWait(barrier):
            return (barrier,), ()
        case Signal(flag):
            return (), (flag,)
        case Await(flag):
            return (flag,), ()
    return (), ()


def _region_exprs(regions: Iterable[Region]) -> tuple[Expr, ...]:
    return tuple(e for r in regions for pair in r.ranges for e in pair)


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The root of every expression at any depth."""
    for s in statements_in(stmt):
        yield from own_expressions(s)


def accesses(stmt: Stmt) -> Iterator[Load | Store]:
    """Every load and store at any depth; the regions of blocks and tiles are not accesses."""
    for s in statements_in(stmt):
        if not isinstance(s, Block | Tile):
            for e in own_expressions(s):
                yield from loads(e)
        if isinstance(s, Store):
            yield s


def touched_buffers(stmt: Stmt) -> tuple[set[str], set[str]]:
    """Names of the buffers read and written at any depth, allocations of `stmt` left out."""
    reads: set[str] = set()
    writes: set[str] = set()
    own: set[str] = set()
    for access in accesses(stmt):
        (writes if isinstance(access, Store) else reads).add(access.buffer)
    for s in statements_in(stmt):
        read, written = own_regions(s)
        reads.update(r.buffer for r in read)
        writes.update(r.buffer for r in written)
        if isinstance(s, Alloc):
            own.add(s.buffer.name)
    return reads - own, writes - own


def blocks(stmt: Stmt) -> Iterator[Block]:
    """Every block at any depth, in order."""
    return (s for s in statements_in(stmt) if isinstance(s, Block))


def loops(stmt: Stmt) -> Iterator[For]:
    """Every loop at any depth, outer loops first."""
    return (s for s in statements_in(stmt) if isinstance(s, For))


def bound_variables(stmt: Stmt) -> set[str]:
    """The variables that loops and lets bind at any depth."""
    return {s.name for s in statements_in(stmt) if isinstance(s, For | Let)}


def buffers(func: Func) -> dict[str, Buffer]:
    """Parameters and allocations by name."""
    found = {b.name: b for b in func.params}
    for s in statements_in(func.body):
        if isinstance(s, Alloc):
            found[s.buffer.name] = s.buffer
    return found


def path_to(func: Func, target: Stmt) -> Path:
    """The statements around `target` (the very object), outermost first."""
    path: list[Stmt] = []

    def search(stmt: Stmt) -> bool:
        if stmt is target:
            return True
        path.append(stmt)
        for child in child_stmts(stmt):
            if search(child):
                return True
        path.pop()
        return False

    if not search(func.body):
        raise LookupError(f"not a statement of {func.name}")
    return tuple(path)


def loops_above(func: Func, block: str | Block) -> tuple[For, ...]:
    """The loops around a block, outermost first."""
    target = find_block(func, block) if isinstance(block, str) else block
    return tuple(s for s in path_to(func, target) if isinstance(s, For))


def find_block(func: Func, name: str) -> Block:
    """The block called `name`."""
    return _find(func, name, "block", blocks(func.body))


def find_loop(func: Func, name: str) -> For:
    """The loop called `name`."""
    return _find(func, name, "loop", loops(func.body))


Named = TypeVar("Named", Block, For)


def _find(func: Func, name: str, what: str, candidates: Iterator[Named]) -> Named:
    seen: list[str] = []
    for s in candidates:
        if s.name == name:
            return s
        seen.append(s.name)
    near = difflib.get_close_matches(name, seen, n=3) or seen
    raise ScheduleError(
        f"schedule.no-{what}",
        f"function {func.name!r} has no {what} named {name!r}",
        help=f"there is {', '.join(map(repr, near))}" if near else f"it has no {what} at all",
    )
