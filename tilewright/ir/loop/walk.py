"""Walking and rebuilding loop functions: substitution, renaming, finding things by name.

Rebuilding returns the same object where nothing changed, so a caller sees with `is` whether a
rewrite did anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Any, TypeVar

from tilewright.arith.expr import Expr, Load, Var
from tilewright.arith.walk import loads, rewrite, substitute
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import (
    Alloc,
    Barrier,
    Block,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    Iter,
    MbarrierWait,
    Region,
    Seq,
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


_MAP: dict[type, Callable[..., Stmt]] = {
    Seq: _map_seq,
    For: _map_for,
    If: _map_if,
    Store: _map_store,
    Alloc: _map_alloc,
    Block: _map_block,
    Tile: _map_tile,
    MbarrierWait: lambda s, fs, fe: MbarrierWait(map_region(s.barrier, fe), fe(s.parity)),
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


def rename_buffers(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """`stmt` with buffers renamed in loads, stores, regions and allocations."""

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.dtype, e.mask)
        return None

    def rename(s: Stmt) -> Stmt | None:
        rename_one = _RENAME.get(type(s))
        return None if rename_one is None else rename_one(s, names)

    return rewrite_stmts(map_exprs(stmt, lambda e: rewrite(e, load)), rename)


def rename_loops(stmt: Stmt, part: str) -> Stmt:
    """A copy of a statement whose loops get names of their own."""
    names = {s.name: f"{s.name}.{part}" for s in statements_in(stmt) if isinstance(s, For)}

    def rename(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        return For(names[s.name], s.extent, s.kind, s.body, s.annotations)

    copied = substitute_stmt(stmt, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(copied, rename)


def _rename_region(r: Region, names: Mapping[str, str]) -> Region:
    return Region(names[r.buffer], r.ranges) if r.buffer in names else r


def _rename_store(s: Store, names: Mapping[str, str]) -> Stmt | None:
    return Store(names[s.buffer], s.indices, s.value, s.mask) if s.buffer in names else None


def _rename_alloc(s: Alloc, names: Mapping[str, str]) -> Stmt | None:
    b = s.buffer
    if b.name not in names:
        return None
    return Alloc(Buffer(names[b.name], b.dtype, b.shape, b.scope), s.body)


def _rename_block(s: Block, names: Mapping[str, str]) -> Stmt | None:
    reads = _each(s.reads, lambda r: _rename_region(r, names))
    writes = _each(s.writes, lambda r: _rename_region(r, names))
    if reads is s.reads and writes is s.writes:
        return None
    return Block(s.name, s.iters, reads, writes, s.body, s.init, s.predicate, s.annotations)


def _rename_tile(s: Tile, names: Mapping[str, str]) -> Stmt | None:
    dst = _rename_region(s.dst, names)
    srcs = _each(s.srcs, lambda r: _rename_region(r, names))
    return None if dst is s.dst and srcs is s.srcs else Tile(s.op, dst, srcs, s.intrinsic)


_RENAME: dict[type, Callable[..., Stmt | None]] = {
    Store: _rename_store,
    Alloc: _rename_alloc,
    Block: _rename_block,
    Tile: _rename_tile,
}


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
    **dict.fromkeys((MbarrierWait, Barrier, CpAsyncCommit, CpAsyncWait), lambda s: ()),
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
        case Tile(_, dst, srcs):
            return _region_exprs((dst, *srcs))
    return ()


def _region_exprs(regions: Iterable[Region]) -> tuple[Expr, ...]:
    return tuple(e for r in regions for pair in r.ranges for e in pair)


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The root of every expression at any depth."""
    for s in statements_in(stmt):
        yield from own_expressions(s)


def accesses(stmt: Stmt) -> Iterator[Load | Store]:
    """Every load and store at any depth; signatures of blocks and tiles are not accesses."""
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
        if isinstance(s, Tile):
            reads.update(r.buffer for r in s.srcs)
            writes.add(s.dst.buffer)
        elif isinstance(s, Alloc):
            own.add(s.buffer.name)
    return reads - own, writes - own


def blocks(stmt: Stmt) -> Iterator[Block]:
    """Every block at any depth, in order."""
    return (s for s in statements_in(stmt) if isinstance(s, Block))


def loops(stmt: Stmt) -> Iterator[For]:
    """Every loop at any depth, outer loops first."""
    return (s for s in statements_in(stmt) if isinstance(s, For))


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
