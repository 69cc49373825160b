"""Where in a loop a moved nest goes: before its first consumer or after its last producer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.ir.loop.nodes import Alloc, Func, Seq, Stmt
from tilewright.ir.loop.walk import seq
from tilewright.schedule.tree import Spine, leaves, replaced, target_loop

Wanted = Callable[[Stmt], bool]


def placed_before(func: Func, loop: Spine, new: Stmt, wanted: Wanted) -> Func:
    """`func` with `new` in the loop's body, before the first part that holds one of the leaves."""
    return _placed(func, loop, lambda body: _before(body, new, wanted))


def placed_after(func: Func, loop: Spine, new: Stmt, wanted: Wanted) -> Func:
    """`func` with `new` in the loop's body, after the last part that holds one of the leaves."""
    return _placed(func, loop, lambda body: _after(body, new, wanted))


def _placed(func: Func, loop: Spine, change: Callable[[Stmt], Stmt]) -> Func:
    target = target_loop(loop)
    return replaced(func, loop, replace(target, body=change(target.body)))


def _before(body: Stmt, new: Stmt, wanted: Wanted) -> Stmt:
    if isinstance(body, Alloc):
        return Alloc(body.buffer, _before(body.body, new, wanted))
    parts = body.stmts if isinstance(body, Seq) else (body,)
    at = next(n for n, part in enumerate(parts) if _holds(part, wanted))
    if isinstance(parts[at], Alloc):
        return seq(*parts[:at], _before(parts[at], new, wanted), *parts[at + 1 :])
    return seq(*parts[:at], new, *parts[at:])


def _after(body: Stmt, new: Stmt, wanted: Wanted) -> Stmt:
    if isinstance(body, Alloc):
        return Alloc(body.buffer, _after(body.body, new, wanted))
    parts = body.stmts if isinstance(body, Seq) else (body,)
    at = max(n for n, part in enumerate(parts) if _holds(part, wanted))
    if isinstance(parts[at], Alloc):
        return seq(*parts[:at], _after(parts[at], new, wanted), *parts[at + 1 :])
    return seq(*parts[: at + 1], new, *parts[at + 1 :])


def _holds(stmt: Stmt, wanted: Wanted) -> bool:
    return any(wanted(leaf) for leaf in leaves(stmt))
