"""Copies of whole buffers, which `cache_read` and `cache_write` put into a function."""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import SCOPES, Block, Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import check_block_free, check_loop_free


def copy_nest(name: str, source: Buffer, target: Buffer) -> Stmt:
    """Loops `<name>.ax0, ...` around a block called `name` that copies element by element."""
    nest: Stmt = copy_block(name, source, target)
    for n, extent in reversed(tuple(enumerate(source.shape))):
        nest = For(f"{name}.ax{n}", extent, "serial", nest)
    return nest


def copy_block(name: str, source: Buffer, target: Buffer) -> Block:
    """A block called `name` that copies an element, in loops `<name>.ax0, ...`."""
    iters = tuple(
        Iter(f"v{n}", "S", extent, Var(f"{name}.ax{n}")) for n, extent in enumerate(source.shape)
    )
    indices = tuple(Var(it.name) for it in iters)
    store = Store(target.name, indices, Load(source.name, indices, source.dtype))
    return make_block(name, iters, store)


def check_cache(func: Func, buffer: str, block: str, scope: str, rank: int) -> None:
    """Refuse a copy in no known scope, or whose names are taken."""
    if scope not in SCOPES:
        message = f"no scope {scope!r}"
        raise refuse(func, "cache.scope", message, help=f"one of {', '.join(SCOPES)}")
    if buffer in buffers(func):
        raise refuse(func, "schedule.name-taken", f"there is a buffer named {buffer!r} already")
    check_block_free(func, block)
    check_loop_free(func, *(f"{block}.ax{n}" for n in range(rank)))
