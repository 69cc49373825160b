"""`reindex_cache_read(block, buffer, scope)`: prefetch a block's reads of a buffer.

    for i in serial(M) {                        alloc B.held: f32[M] @register
      block "C" ... {                           for i.B.held in serial(M) {
        C[v] = A[v] + B[v // 2] }         →       block "B.held" ... { B.held[v] = B[v // 2] }
    }                                           }
                                                for i in serial(M) {
                                                  block "C" ... { C[v] = A[v] + B.held[v] }
                                                }

The copy is indexed by the block's iterators, those of a sum too, however the buffer is indexed. Its
loops repeat those that hold only the block, with their kinds, so that the thread that needs an
element loads it. The loads are then issued together, without stores between them.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load, Var
from tilewright.arith.walk import loads, rewrite
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Stmt, Store
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.walk import buffers, rewrite_stmts
from tilewright.schedule.analysis.dataflow import check_order, written
from tilewright.schedule.buffer_copy import check_cache
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    inserted_before,
    leaves,
    replaced,
    target_block,
)


def reindex_cache_read(func: Func, block: str, buffer: str, scope: str) -> Func:
    """Copy what a block reads of a buffer, in a nest of its own before that of the block."""
    old = target_block(block_spine(func, block))
    load = _only_load(func, old, buffer)
    name = reindex_cache_read_name(func, block, buffer, scope)
    check_cache(func, name, name, scope, 0)
    known = buffers(func)
    known[name] = Buffer(name, load.dtype, tuple(it.extent for it in old.iters), scope)
    place = Load(name, tuple(Var(it.name) for it in old.iters), load.dtype)
    store = Store(name, place.indices, load)
    points = tuple(replace(it, kind="S") for it in old.iters)  # a term of a sum has its own, too
    copy = make_block(name, points, store, None, old.predicate, buffers=known)

    def copied(s: Stmt) -> Stmt | None:
        return copy if s is old else None

    alone = _alone(func, block)
    after = inserted_before(func, alone, rename_loops(rewrite_stmts(alone[-1], copied), name))
    after = replaced(after, block_spine(after, block), _reading(old, load, place, known))
    after = replace(after, body=Alloc(known[name], after.body))
    check_order(func, after, "reindex-cache-read")
    return after


def _reading(block: Block, load: Load, place: Load, known: dict[str, Buffer]) -> Block:
    """The block, reading the copy."""

    def held(e: Expr) -> Expr | None:
        return place if e is load else None

    assert isinstance(block.body, Store)
    body = replace(block.body, value=rewrite(block.body.value, held))
    made = make_block(block.name, block.iters, body, None, block.predicate, buffers=known)
    return replace(made, annotations=block.annotations)


def _only_load(func: Func, block: Block, buffer: str) -> Load:
    """The single load of a buffer in a block that computes one element at each point."""
    body = block.body
    found = {x for x in loads(body.value) if x.buffer == buffer} if isinstance(body, Store) else ()
    if len(found) != 1 or block.init is not None or buffer in written(block):
        message = f'block "{block.name}" does not read {buffer!r} in one way at each point'
        raise refuse(func, "reindex-cache-read.block", message, block)
    return next(iter(found))


def _alone(func: Func, block: str) -> Spine:
    """The spine to the outermost loop that holds only the block."""
    spine = block_spine(func, block)
    for n, s in enumerate(spine):
        if isinstance(s, For | Block) and list(leaves(s)) == [spine[-1]]:
            return spine[: n + 1]
    return spine


def reindex_cache_read_name(func: Func, block: str, buffer: str, scope: str) -> str:
    """The name of the copy: of its block and of its buffer."""
    return f"{buffer}.held"
