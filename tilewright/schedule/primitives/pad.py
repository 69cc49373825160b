"""`pad(block, iterator, multiple)`: round the extent of a block's iterator up to a multiple.

    alloc T: f32[M]                            alloc T: f32[(M + 7) // 8 * 8]
    for i in serial(M) {                       for i in serial((M + 7) // 8 * 8) {
      block "T" [v: S(M) = i] ...        →       block "T" [v: S((M + 7) // 8 * 8) = i] ...
        { T[v] = A[v] * 2.0 }                      { T[v] = A[min(v, M - 1)] * 2.0 }
    }                                          }

The loop can then be split by the multiple without a guard. Readers are unchanged. Elements past the
original end are computed from clamped indices and are never read. A copy along the iterator is
masked instead, which keeps neighbours adjacent; to `fill` with "zeros" all loads are, and what is
past the end is computed from zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Binary, Cast, Expr, Load, Var, ceildiv, minimum
from tilewright.arith.simplify import prove, prove_less, simplify
from tilewright.arith.walk import conjuncts, free_vars, rewrite, substitute
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Iter, Store
from tilewright.ir.loop.walk import blocks, buffers, map_exprs
from tilewright.schedule.analysis.dataflow import allocation, only_buffer
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import Spine, block_spine, leaves, replaced, target_block


def pad(func: Func, block: str, iterator: str, multiple: int, fill: str = "") -> Func:
    """Round a spatial iterator, its loop and the buffer that it indexes up to a multiple."""
    spine = block_spine(func, block)
    old = target_block(spine)
    if multiple < 1:
        raise refuse(func, "pad.multiple", f"cannot pad to a multiple of {multiple}", old)
    if fill not in ("", "zeros"):
        raise refuse(
            func, "pad.fill", f"cannot fill with {fill!r}", old, help='"zeros" is possible'
        )
    if any(blocks(old.body)):
        message = f'block "{block}" consists of blocks, whose domains would have to grow too'
        raise refuse(func, "pad.nested", message, old, help="pad before blockize")
    it = _iterator(func, old, iterator)
    if prove((it.extent % multiple).eq(0)):
        return func
    buffer = only_buffer(func, old, "pad")
    allocation(func, buffer, "pad", old)
    loop = own_loop(func, spine, old, it, "pad")
    size = simplify(ceildiv(it.extent, multiple) * multiple)
    known = buffers(func)
    known[buffer] = _grown(func, old, known[buffer], it, size)
    padded = _padded(old, it, size, known, zeros=fill == "zeros")
    # The block binds the loop, so the whole spine down to it is replaced at once.
    inner = replaced(func, spine, padded)
    at = spine_of_loop(inner, block, loop)
    assert isinstance(at[-1], For)
    grown = replaced(inner, at, replace(at[-1], extent=size))
    alloc = allocation(grown, buffer, "pad")
    assert isinstance(alloc[-1], Alloc)
    return replaced(grown, alloc, Alloc(known[buffer], alloc[-1].body))


def spine_of_loop(func: Func, block: str, loop: str) -> Spine:
    """The statements from the outermost one down to a loop around a block."""
    spine = block_spine(func, block)
    end = next(n for n, s in enumerate(spine) if isinstance(s, For) and s.name == loop)
    return spine[: end + 1]


def _iterator(func: Func, block: Block, name: str) -> Iter:
    found = next((it for it in block.iters if it.name == name), None)
    if found is None or found.kind != "S":
        message = f'block "{block.name}" has no spatial iterator {name!r}'
        spatial = ", ".join(it.name for it in block.iters if it.kind == "S")
        raise refuse(func, "pad.iterator", message, block, help=f"it has {spatial or 'none'}")
    return found


def own_loop(func: Func, spine: Spine, block: Block, it: Iter, step: str) -> str:
    """The loop that the iterator is bound to, alone and over its whole domain."""
    for s in spine:
        if isinstance(s, For) and it.binding is Var(s.name):
            if s.extent is not it.extent:
                break
            if any(leaf is not block for leaf in leaves(s)):
                message = f'loop {s.name} is not the loop of block "{block.name}" alone'
                raise refuse(func, f"{step}.shared", message, s)
            return s.name
    message = f"iterator {it.name} is not bound to one loop over its whole domain"
    help = "pad before any split"
    raise refuse(func, f"{step}.bound", message, block, focus=it.name, help=help)


def _grown(func: Func, block: Block, buffer: Buffer, it: Iter, size: Expr) -> Buffer:
    shape = list(buffer.shape)
    used = [
        dim for dim, (index, _) in enumerate(block.writes[0].ranges) if it.name in free_vars(index)
    ]
    if len(used) != 1 or block.writes[0].ranges[used[0]][0] is not Var(it.name):
        message = f"{buffer.name!r} is not indexed by {it.name} itself in one dimension"
        raise refuse(func, "pad.index", message, block, focus=it.name)
    if shape[used[0]] is not it.extent:
        message = f"dimension {used[0]} of {buffer.name!r} is {shape[used[0]]}, not {it.extent}"
        raise refuse(func, "pad.dimension", message, block, focus=it.name)
    shape[used[0]] = size
    return replace(buffer, shape=tuple(shape))


def _is_masked_beyond(mask: Expr | None, index: Expr, size: Expr) -> bool:
    """Whether a condition of the mask keeps the index below the size."""
    return mask is not None and any(
        isinstance(c, Binary) and c.op == "lt" and prove(c.b - c.a <= size - index)
        for c in conjuncts(mask)
    )


def _padded(block: Block, it: Iter, size: Expr, known: Mapping[str, Buffer], zeros: bool) -> Block:
    iters = tuple(replace(x, extent=size) if x is it else x for x in block.iters)
    extents = {x.name: x.extent for x in iters}

    written = block.writes[0].buffer
    # The iterator is clamped, not the index: expressions of it are then computed once a row.
    last = {it.name: minimum(Var(it.name), simplify(it.extent - 1))}
    copied = _copied(block)
    if not _is_along(block, copied, it):
        copied = None

    def clamp(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer == written:
            return None
        pairs = zip(e.indices, known[e.buffer].shape, strict=True)
        if all(
            it.name not in free_vars(i)
            or prove_less(i, dim, extents)
            or _is_masked_beyond(e.mask, i, dim)
            for i, dim in pairs
        ):
            return None
        if zeros or copied is e:
            inside = Var(it.name) < it.extent
            both = inside if e.mask is None else e.mask & inside
            return Load(e.buffer, e.indices, e.dtype, both)
        mask = None if e.mask is None else substitute(e.mask, last)
        return Load(e.buffer, tuple(substitute(i, last) for i in e.indices), e.dtype, mask)

    body = map_exprs(block.body, lambda e: rewrite(e, clamp))
    return make_block(
        block.name,
        iters,
        body,
        block.init,
        block.predicate,
        annotations=block.annotations,
        buffers=known,
    )


def _copied(block: Block) -> Load | None:
    """What a block copies, perhaps as another type, if it does nothing else."""
    if not isinstance(block.body, Store) or block.init is not None:
        return None
    value = block.body.value
    source = value.a if isinstance(value, Cast) else value
    return source if isinstance(source, Load) else None


def _is_along(block: Block, copied: Load | None, it: Iter) -> bool:
    """Whether a plain copy has stride 1 along the iterator, and no mask yet."""
    plain = isinstance(block.body, Store) and block.body.value is copied
    return (
        copied is not None and plain and copied.mask is None and copied.indices[-1] is Var(it.name)
    )
