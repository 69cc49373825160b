"""Finding a statement with everything around it, and putting another one in its place.

A *spine* is the way from a function's body down to one statement: the statements around it,
outermost first, then itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tilewright.arith.expr import TRUE, Expr
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, If, Iter, Seq, Stmt, Store, Tile
from tilewright.ir.loop.walk import blocks, child_stmts, find_block, find_loop, map_stmt, seq
from tilewright.schedule.diagnostics import refuse

Spine = tuple[Stmt, ...]
Extents = Mapping[str, Expr]
EMPTY = Seq(())


def spine_to(func: Func, wanted: Callable[[Stmt], bool]) -> Spine | None:
    """The way to the first statement that is wanted."""
    spine: list[Stmt] = []

    def search(stmt: Stmt) -> bool:
        spine.append(stmt)
        if wanted(stmt):
            return True
        for child in child_stmts(stmt):  # a generator for `any` would take twice as long
            if search(child):
                return True
        spine.pop()
        return False

    return tuple(spine) if search(func.body) else None


def loop_spine(func: Func, name: str) -> Spine:
    """The way to the loop called `name`."""
    found = spine_to(func, lambda s: isinstance(s, For) and s.name == name)
    return found or (find_loop(func, name),)


def block_spine(func: Func, name: str) -> Spine:
    """The way to the block called `name`, which must not be part of another block."""
    found = spine_to(func, lambda s: isinstance(s, Block) and s.name == name)
    if found is None:
        return (find_block(func, name),)
    around = next((s for s in found[:-1] if isinstance(s, Block)), None)
    if around is not None:
        message = f'block "{name}" is inside block "{around.name}" and cannot be changed alone'
        raise refuse(func, "schedule.nested", message, found[-1], help="change it before blockize")
    return found


def target_loop(spine: Spine) -> For:
    """The loop at the end of a spine."""
    assert isinstance(spine[-1], For)
    return spine[-1]


def target_block(spine: Spine) -> Block:
    """The block at the end of a spine."""
    assert isinstance(spine[-1], Block)
    return spine[-1]


def loops_of(spine: Iterable[Stmt]) -> tuple[For, ...]:
    """The loops on a spine, outermost first."""
    return tuple(s for s in spine if isinstance(s, For))


def extents_of(spine: Iterable[Stmt]) -> dict[str, Expr]:
    """The extents of the loops on a spine, and of the iterators of blocks around its end."""
    found: dict[str, Expr] = {}
    for s in spine:
        if isinstance(s, For):
            found[s.name] = s.extent
        elif isinstance(s, Block):
            found.update((it.name, it.extent) for it in s.iters)
    return found


def replaced(func: Func, spine: Spine, new: Stmt | None) -> Func:
    """`func` with the end of the spine replaced; `None` removes it and whatever that empties."""
    old = spine[-1]
    for parent in reversed(spine[:-1]):
        new = _with_child(parent, old, new)
        old = parent
    return replace(func, body=EMPTY if new is None else new)


def _with_child(parent: Stmt, old: Stmt, new: Stmt | None) -> Stmt | None:
    if isinstance(parent, Seq):
        kept = [new if s is old else s for s in parent.stmts]
        left = [s for s in kept if s is not None]
        return seq(*left) if left else None
    if isinstance(parent, If):
        return _with_branch(parent, old, new)
    if new is None:
        return None
    if isinstance(parent, For):
        return For(parent.name, parent.extent, parent.kind, new, parent.annotations)
    if isinstance(parent, Alloc):
        return Alloc(parent.buffer, new)
    return map_stmt(parent, lambda s: new if s is old else s)


def _with_branch(parent: If, old: Stmt, new: Stmt | None) -> Stmt | None:
    if parent.orelse is old:
        return If(parent.cond, parent.then, new)
    if new is None and parent.orelse is None:
        return None
    return If(parent.cond, EMPTY if new is None else new, parent.orelse)


def inserted_before(func: Func, spine: Spine, new: Stmt) -> Func:
    """`func` with `new` just before the end of the spine."""
    return replaced(func, spine, seq(new, spine[-1]))


def inserted_after(func: Func, spine: Spine, new: Stmt) -> Func:
    """`func` with `new` just after the end of the spine."""
    return replaced(func, spine, seq(spine[-1], new))


def outermost(spine: Spine) -> Spine:
    """The part of a spine that ends at the outermost nest: below allocations and sequences."""
    for n, s in enumerate(spine):
        if not isinstance(s, Alloc | Seq):
            return spine[: n + 1]
    return spine


def leaves(stmt: Stmt) -> Iterator[Stmt]:
    """Blocks, and stores and tiles that stand outside any, in the order in which they run."""
    if isinstance(stmt, Block | Store | Tile):
        yield stmt
        return
    for child in child_stmts(stmt):
        yield from leaves(child)


def leaf_spines(stmt: Stmt, above: Spine = ()) -> Iterator[Spine]:
    """The spine of each leaf, in order."""
    spine = (*above, stmt)
    if isinstance(stmt, Block | Store | Tile):
        yield spine
        return
    for child in child_stmts(stmt):
        yield from leaf_spines(child, spine)


def with_loops(stmt: Stmt, values: Mapping[str, Expr], extents: Extents, guard: Expr) -> Stmt:
    """`stmt` with loop variables replaced and everything in it run only where `guard` holds.

    Blocks mention loops in bindings and predicates only, so their code is not looked at.
    """
    match stmt:
        case Block():
            return _block_with_loops(stmt, values, extents, guard)
        case Store() | Tile():
            changed = map_stmt(stmt, f_expr=lambda e: substitute(e, values))
            return changed if guard is TRUE else If(guard, changed)
        case For(name, extent):
            inner = _changed(extent, values, extents)
            extents = {**extents, name: inner}
            body = with_loops(stmt.body, values, extents, guard)
            if inner is extent and body is stmt.body:
                return stmt
            return For(name, inner, stmt.kind, body, stmt.annotations)
    return map_stmt(
        stmt,
        lambda s: with_loops(s, values, extents, guard),
        lambda e: _changed(e, values, extents),
    )


def _changed(e: Expr, values: Mapping[str, Expr], extents: Extents) -> Expr:
    return e if free_vars(e).isdisjoint(values) else simplify(substitute(e, values), extents)


def _block_with_loops(b: Block, values: Mapping[str, Expr], extents: Extents, guard: Expr) -> Block:
    iters = tuple(
        it
        if (new := _changed(it.binding, values, extents)) is it.binding
        else Iter(it.name, it.kind, it.extent, new)
        for it in b.iters
    )
    predicate = _changed(b.predicate, values, extents) & guard
    return Block(b.name, iters, b.reads, b.writes, b.body, b.init, predicate, b.annotations)


def check_loop_free(func: Func, *names: str) -> None:
    """Refuse a new loop whose name another one has."""
    if (found := spine_to(func, lambda s: isinstance(s, For) and s.name in names)) is not None:
        message = f"there is a loop named {target_loop(found).name!r} already"
        raise refuse(func, "schedule.name-taken", message, found[-1])


def check_block_free(func: Func, name: str) -> None:
    """Refuse a new block whose name another one has."""
    if (found := next((b for b in blocks(func.body) if b.name == name), None)) is not None:
        message = f"there is a block named {name!r} already"
        raise refuse(func, "schedule.name-taken", message, found)
