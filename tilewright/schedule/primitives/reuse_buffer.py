"""`reuse_buffer(buffer, block)`: keep an intermediate result where its last reader writes.

    for i in serial(M) {                              for i in serial(M) {
      block "e" { e[vi, vj] = exp(x[vi, vj]) }          block "e" { y[vi, vj] = exp(x[vi, vj]) }
      block "s" { s[vi] += e[vi, vk] }             →    block "s" { s[vi] += y[vi, vk] }
      block "y" { y[vi, vj] = e[vi, vj] / s[vi] }       block "y" { y[vi, vj] = y[vi, vj] / s[vi] }
    }                                                 }

The block must read an element of the buffer only to write the same element of its own. One block
writes the buffer, before all that read it; and each iteration of the loops around all of them
writes and reads elements of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from tilewright.arith.expr import Expr, as_int
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, Tile
from tilewright.ir.loop.rename import rename_buffers
from tilewright.ir.loop.walk import (
    accesses,
    buffers,
    find_block,
    statements_in,
)
from tilewright.schedule.analysis.dataflow import allocation, only_buffer, read, written
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import Spine, leaf_spines, loops_of, replaced


def reuse_buffer(func: Func, buffer: str, block: str) -> Func:
    """Keep an intermediate result where its last reader, a block, writes."""
    spine = allocation(func, buffer, "reuse-buffer")
    alloc = spine[-1]
    assert isinstance(alloc, Alloc)
    last = find_block(func, block)
    target = only_buffer(func, last, "reuse-buffer")
    _check_elements(func, buffer, target, last)
    users = [s for s in leaf_spines(func.body) if buffer in written(s[-1]) | read(s[-1])]
    _check_order(func, buffer, target, users, last)
    _check_rows(func, buffer, users, last)
    func = replaced(func, spine, alloc.body)
    return replace(func, body=rename_buffers(func.body, {buffer: target}))


def _check_elements(func: Func, buffer: str, target: str, last: Block) -> None:
    """Whether the last reader overwrites nothing but what it has read."""
    known = buffers(func)
    old, new = known[buffer], known[target]
    if (old.dtype, old.shape) != (new.dtype, new.shape):
        message = f"{buffer!r} and {target!r} differ in type or shape"
        raise refuse(func, "reuse-buffer.shape", message, last)
    stores = {a.indices for a in accesses(last) if a.buffer == target}
    loads = {a.indices for a in accesses(last) if a.buffer == buffer}
    if len(stores) != 1 or loads != stores or last.init is not None:
        message = f'block "{last.name}" must read {buffer!r} just where it writes {target!r}'
        raise refuse(func, "reuse-buffer.indices", message, last)


def _check_order(func: Func, buffer: str, target: str, users: list[Spine], last: Block) -> None:
    """Whether the buffer is written by one block, then read, and `last` is the last to read it."""
    others = [s[-1] for s in users[1:] if buffer in written(s[-1])]
    tiles = any(isinstance(s, Tile) for spine in users for s in statements_in(spine[-1]))
    if buffer not in written(users[0][-1]) or others or tiles or users[-1][-1] is not last:
        message = f'{buffer!r} must be written once, before it is read, and last by "{last.name}"'
        raise refuse(func, "reuse-buffer.order", message, last)
    for spine in leaf_spines(func.body):
        if spine[-1] is not last and target in read(spine[-1]):
            message = f"{target!r} is read by another block"
            raise refuse(func, "reuse-buffer.readers", message, spine[-1])


def _check_rows(func: Func, buffer: str, users: list[Spine], last: Block) -> None:
    """Whether each iteration of the shared loops writes all elements that it reads."""
    around = _around(users)
    shared = {loop.name for loop in around if as_int(loop.extent) != 1}
    own = [
        _outer_indices(spine, indices, around)
        for spine in users
        for indices in _places(spine, buffer)
    ]
    used = {name for index in own[0] for name in free_vars(index)}
    first = users[0][-1]
    guarded = isinstance(first, Block) and free_vars(first.predicate) & shared
    if guarded or not shared <= used or any(i[: len(own[0])] != own[0] for i in own):
        message = f"iterations of the loops around all uses of {buffer!r} share elements of it"
        raise refuse(func, "reuse-buffer.rows", message, last)


def _around(users: list[Spine]) -> list[For]:
    """The loops around all users."""
    nests = [loops_of(spine) for spine in users]
    levels = takewhile(lambda level: all(x is level[0] for x in level), zip(*nests, strict=False))
    return [level[0] for level in levels]


def _outer_indices(spine: Spine, indices: tuple[Expr, ...], around: list[For]) -> list[Expr]:
    """The leading indices that only the loops around all users change."""
    inner = {loop.name for loop in loops_of(spine)} - {loop.name for loop in around}
    return list(takewhile(lambda index: inner.isdisjoint(free_vars(index)), indices))


def _places(spine: Spine, buffer: str) -> Iterator[tuple[Expr, ...]]:
    """The indices of all accesses to a buffer by a leaf, in terms of loops."""
    leaf = spine[-1]
    bindings = {it.name: it.binding for it in leaf.iters} if isinstance(leaf, Block) else {}
    for access in accesses(leaf):
        if access.buffer == buffer:
            yield tuple(substitute(i, bindings) for i in access.indices)
