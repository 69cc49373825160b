"""`cache_write(block, scope)`: a block writes to a new buffer, which is copied out afterwards.

    for i in serial(M) {                        alloc C.local: f32[M] @local
      block "C" ... { C[v] = A[v] * 2.0 }       for i in serial(M) {
    }                                     →       block "C" ... { C.local[v] = A[v] * 2.0 }
                                                }
                                                for C.wb.ax0 in serial(M) {
                                                  block "C.wb" ... { C[v0] = C.local[v0] }
                                                }

The new buffer is called `<buffer>.<scope>`, the block that copies it out `<buffer>.wb`. The copy
follows the outermost loop that holds only the block; `reverse_compute_at` moves it inwards. In
loops that hold other blocks too, it copies what one iteration writes. A block in the same loops
that initializes the buffer also writes to the new one.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Stmt, Store
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.schedule.analysis.bounds_inference import loops_over_region, required_region
from tilewright.schedule.analysis.dataflow import check_order, only_buffer, writers
from tilewright.schedule.buffer_copy import check_cache, copy_block, copy_nest
from tilewright.schedule.rewrite_accesses import AccessRewriter, Extents
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    extents_of,
    inserted_after,
    leaves,
    loops_of,
    replaced,
    target_block,
)


def cache_write(func: Func, block: str, scope: str) -> Func:
    """Let a block write to a new buffer, and copy that to the old one."""
    old = target_block(block_spine(func, block))
    buffer, started = _written(func, old)
    name, copier = f"{buffer}.{scope}", f"{buffer}.wb"
    known = buffers(func)
    check_cache(func, name, copier, scope, len(known[buffer].shape))
    known[name] = replace(known[buffer], name=name, scope=scope)

    def load(e: Load, extents: Extents) -> Expr:
        return Load(name, e.indices, e.dtype, e.mask)

    def store(s: Store, extents: Extents) -> Stmt:
        return Store(name, s.indices, s.value, s.mask)

    after = func
    for writer in (*started, block):
        spine = block_spine(after, writer)
        rebuilt = AccessRewriter(buffer, known, load, store).block(target_block(spine))
        after = replaced(after, spine, rebuilt)
    alone = _alone(after, {*started, block}, block)
    copy = _copy(after, alone, known[name], known[buffer], copier)
    after = inserted_after(after, alone, copy)
    after = replace(after, body=Alloc(known[name], after.body))
    check_order(func, after, "cache-write")
    return after


def _written(func: Func, block: Block) -> tuple[str, tuple[str, ...]]:
    """The buffer that a block writes, and the block that initializes it, if that is another one."""
    starter = f"{block.name}.init"
    if starter not in {b.name for b in blocks(func.body)}:
        return only_buffer(func, block, "cache-write"), ()
    names = {block.name, starter}
    written = {
        s[-1].name for s in writers(func, block.writes[0].buffer) if isinstance(s[-1], Block)
    }
    around = {loops_of(_alone(func, names, name)[:-1]) for name in names}
    if written != names or len(around) > 1:
        return only_buffer(func, block, "cache-write"), ()
    return block.writes[0].buffer, (starter,)


def _alone(func: Func, names: set[str], block: str) -> Spine:
    """The spine to the outermost nest that holds only these blocks."""
    spine = block_spine(func, block)
    for n, s in enumerate(spine):
        inside = {leaf.name if isinstance(leaf, Block) else "" for leaf in leaves(s)}
        if isinstance(s, For | Block) and inside <= names:
            return spine[: n + 1]
    return spine


def _copy(func: Func, alone: Spine, source: Buffer, target: Buffer, name: str) -> Stmt:
    """The copy of all, or of what one iteration of the loops around writes."""
    around = alone[:-1]
    if not loops_of(around):
        return copy_nest(name, source, target)
    scope, depth = extents_of(around), len(around)
    found = [
        (spine, [r for r in target_block(spine).writes if r.buffer == source.name])
        for spine in writers(func, source.name)
    ]
    known = {**buffers(func), source.name: source}
    return loops_over_region(
        copy_block(name, source, target), required_region(found, depth, known, scope), scope
    )


def cache_write_name(func: Func, block: str, scope: str) -> str:
    """The name of the block that copies the result out."""
    return f"{_written(func, target_block(block_spine(func, block)))[0]}.wb"
