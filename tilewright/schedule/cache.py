"""Copies of whole buffers, which `cache_read` and `cache_write` put into a function."""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.ir.loop.nodes import SCOPES, Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.regions import make_block
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.failure import refuse
from tilewright.schedule.tree import check_block_free, check_loop_free


def copy_nest(name: str, source: Buffer, target: Buffer) -> Stmt:
    """Loops `<name>.ax0, ...` around a block called `name` that copies element by element."""
    axes = [(f"{name}.ax{n}", f"v{n}", extent) for n, extent in enumerate(source.shape)]
    iters = tuple(Iter(v, "S", extent, Var(loop)) for loop, v, extent in axes)
    indices = tuple(Var(v) for _, v, _ in axes)
    store = Store(target.name, indices, Load(source.name, indices, source.dtype))
    nest: Stmt = make_block(name, iters, store)
    for loop, _, extent in reversed(axes):
        nest = For(loop, extent, "serial", nest)
    return nest


def check_cache(func: Func, buffer: str, block: str, scope: str, rank: int) -> None:
    """Refuse a copy in no known scope, or whose names are taken."""
    if scope not in SCOPES:
        message = f"no scope {scope!r}"
        raise refuse(func, "cache.scope", message, help=f"one of {', '.join(SCOPES)}")
    if buffer in buffers(func):
        raise refuse(func, "schedule.name-taken", f"there is a buffer named {buffer!r} already")
    check_block_free(func, block)
    check_loop_free(func, *(f"{block}.ax{n}" for n in range(rank)))
