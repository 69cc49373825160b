"""`cache_write(block, scope)`: a block writes a buffer of its own, copied out afterwards.

    for i in serial(M) {                        alloc C.local: f32[M] @local
      block "C" ... { C[v] = A[v] * 2.0 }       for i in serial(M) {
    }                                     →       block "C" ... { C.local[v] = A[v] * 2.0 }
                                                }
                                                for C.wb.ax0 in serial(M) {
                                                  block "C.wb" ... { C[v0] = C.local[v0] }
                                                }

The new buffer is called `<buffer>.<scope>`, the block that copies it out `<buffer>.wb`; it stands
just after the outermost loop around the block, `reverse_compute_at` moves it to where it is ready.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load
from tilewright.ir.loop.nodes import Alloc, Func, Stmt, Store
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.cache import check_cache, copy_nest
from tilewright.schedule.dataflow import check_order, only_buffer
from tilewright.schedule.rebuild import Extents, Rebuilder
from tilewright.schedule.tree import (
    block_spine,
    inserted_after,
    outermost,
    replaced,
    target_block,
)


def cache_write(func: Func, block: str, scope: str) -> Func:
    """Let a block write to memory of its own, and copy that to where it wrote before."""
    spine = block_spine(func, block)
    old = target_block(spine)
    buffer = only_buffer(func, old, "cache-write")
    name, copier = f"{buffer}.{scope}", f"{buffer}.wb"
    known = buffers(func)
    check_cache(func, name, copier, scope, len(known[buffer].shape))
    known[name] = replace(known[buffer], name=name, scope=scope)

    def load(e: Load, extents: Extents) -> Expr:
        return Load(name, e.indices, e.dtype, e.mask)

    def store(s: Store, extents: Extents) -> Stmt:
        return Store(name, s.indices, s.value, s.mask)

    after = replaced(func, spine, Rebuilder(buffer, known, load, store).block(old))
    copy = copy_nest(copier, known[name], known[buffer])
    after = inserted_after(after, outermost(block_spine(after, block)), copy)
    after = replace(after, body=Alloc(known[name], after.body))
    check_order(func, after, "cache-write")
    return after


def cache_write_name(func: Func, block: str, scope: str) -> str:
    """The name of the block that copies the result out."""
    buffer = only_buffer(func, target_block(block_spine(func, block)), "cache-write")
    return f"{buffer}.wb"
