"""`cache_read(block, buffer, scope)`: a block reads a copy of a buffer, `<buffer>.<scope>`.

    for i in serial(M) {                        alloc A.local: f32[M] @local
      block "C" ... { C[v] = A[v] * 2.0 }       for A.local.ax0 in serial(M) {
    }                                     →       block "A.local" ... { A.local[v0] = A[v0] }
                                                }
                                                for i in serial(M) {
                                                  block "C" ... { C[v] = A.local[v] * 2.0 }
                                                }

The copy is a block and an allocation of the same name. It copies the whole buffer just before the
outermost loop around the block; `compute_at` moves it inwards. In loops whose every iteration
rewrites the whole buffer, each iteration makes a copy. An existing copy of the whole buffer is
shared.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, Seq, Stmt
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.schedule.analysis.dataflow import check_order, read, writers, written
from tilewright.schedule.buffer_copy import check_cache, copy_block, copy_nest
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import AccessRewriter, Extents
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    inserted_before,
    outermost,
    replaced,
    target_block,
)


def cache_read(func: Func, block: str, buffer: str, scope: str) -> Func:
    """Let a block read a copy of a buffer that it reads."""
    spine = block_spine(func, block)
    old = target_block(spine)
    if buffer not in read(old):
        message = f'block "{block}" does not read {buffer!r}'
        help = f"it reads {', '.join(sorted(read(old))) or 'nothing'}"
        raise refuse(func, "cache-read.buffer", message, old, help=help)
    if buffer in written(old):
        message = f'block "{block}" also writes {buffer!r}: a copy would miss that'
        raise refuse(func, "cache-read.written", message, old)
    name = cache_read_name(func, block, buffer, scope)
    if name in written(old):
        message = f'block "{block}" writes {name!r}, which is the copy'
        raise refuse(func, "cache-read.copy", message, old, help="choose a block that reads it")
    known = buffers(func)
    copied = replace(known[buffer], name=name, scope=scope)
    copies = [b for b in blocks(func.body) if b == copy_block(name, known[buffer], copied)]
    if not copies:
        check_cache(func, name, name, scope, len(known[buffer].shape))
    known[name] = copied

    def load(e: Load, extents: Extents) -> Expr:
        return Load(name, e.indices, e.dtype, e.mask)

    after = replaced(func, spine, AccessRewriter(buffer, known, load).block(old))
    if not copies:
        copy = copy_nest(name, known[buffer], known[name])
        after = inserted_before(after, _place(after, block, buffer), copy)
        after = replace(after, body=Alloc(known[name], after.body))
    check_order(func, after, "cache-read")
    return after


def _place(func: Func, block: str, buffer: str) -> Spine:
    """The spine to the outermost nest before which the whole buffer is written.

    That is the outermost nest, except in loops whose every iteration rewrites the buffer.
    """
    spine = block_spine(func, block)
    made = writers(func, buffer)
    for n, s in enumerate(spine):
        if isinstance(s, Alloc | Seq):
            continue
        inside = [w[-1] for w in made if s in w]
        if not inside:
            return spine[: n + 1]
        if not isinstance(s, For) or any(_moves(leaf, buffer, s.name) for leaf in inside):
            break
    return outermost(spine)


def _moves(leaf: Stmt, buffer: str, loop: str) -> bool:
    """Whether a leaf writes different elements of a buffer in each iteration of a loop."""
    if not isinstance(leaf, Block):
        return True
    starts = [start for r in leaf.writes if r.buffer == buffer for start, _ in r.ranges]
    used = {name for start in starts for name in free_vars(start)}
    return any(loop in free_vars(it.binding) for it in leaf.iters if it.name in used)


def cache_read_name(func: Func, block: str, buffer: str, scope: str) -> str:
    """The name of the copy: both the block that makes it and its buffer."""
    return f"{buffer}.{scope}"
