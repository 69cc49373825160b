"""`pad_reduction(block, iterator, multiple)`: round a sum of products up to a multiple of terms.

    for i, k in serial(M, K) {                 for i, k in serial(M, (K + 7) // 8 * 8) {
      block "C" [vi: S(M) = i,                   block "C" [vi: S(M) = i,
                 vk: R(K) = k]                              vk: R((K + 7) // 8 * 8) = k]
        init { C[vi] = 0.0 }             →         init { C[vi] = 0.0 }
        { C[vi] += A[vi, vk] * B[vk] }             { C[vi] += A[vi, vk] if vk < K
    }                                                       * B[vk] if vk < K }
                                               }

The loop can then be split, and its parts summed by themselves (`rfactor`), without a guard. The
additional terms are products of zeros: masked loads.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load, Var, ceildiv
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Block, For, Func, Iter
from tilewright.ir.loop.walk import buffers, map_exprs
from tilewright.schedule.analysis.reduction import is_product, reduction_of
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.primitives.pad import own_loop, spine_of_loop
from tilewright.schedule.tree import block_spine, replaced, target_block


def pad_reduction(func: Func, block: str, iterator: str, multiple: int) -> Func:
    """Round a reduction iterator and its loop up to a multiple, by products of zeros."""
    spine = block_spine(func, block)
    old = target_block(spine)
    if multiple < 1:
        raise refuse(func, "pad-reduction.multiple", f"cannot pad to {multiple} terms", old)
    it = _iterator(func, old, iterator)
    reduction = reduction_of(func, old, "pad-reduction")
    if reduction.op != "add" or not is_product(reduction.term):
        message = f'block "{block}" is no sum of products: a zero among its terms may change it'
        raise refuse(func, "pad-reduction.term", message, old)
    if prove((it.extent % multiple).eq(0)):
        return func
    loop = own_loop(func, spine, old, it, "pad-reduction")
    size = simplify(ceildiv(it.extent, multiple) * multiple)
    inner = replaced(func, spine, _padded(func, old, it, size))
    at = spine_of_loop(inner, block, loop)
    assert isinstance(at[-1], For)
    return replaced(inner, at, replace(at[-1], extent=size))


def _iterator(func: Func, block: Block, name: str) -> Iter:
    found = next((it for it in block.iters if it.name == name), None)
    if found is None or found.kind != "R":
        message = f'block "{block.name}" has no reduction iterator {name!r}'
        reduced = ", ".join(it.name for it in block.iters if it.kind == "R")
        raise refuse(
            func, "pad-reduction.iterator", message, block, help=f"it has {reduced or 'none'}"
        )
    return found


def _padded(func: Func, block: Block, it: Iter, size: Expr) -> Block:
    written = block.writes[0].buffer
    inside = Var(it.name) < it.extent

    def masked(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer == written:
            return None
        return Load(e.buffer, e.indices, e.dtype, inside if e.mask is None else e.mask & inside)

    return make_block(
        block.name,
        tuple(replace(x, extent=size) if x is it else x for x in block.iters),
        map_exprs(block.body, lambda e: rewrite(e, masked)),
        block.init,
        block.predicate,
        annotations=block.annotations,
        buffers=buffers(func),
    )
