"""Which blocks write and read which buffer, and in what order."""

from __future__ import annotations

from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, Stmt
from tilewright.ir.loop.walk import blocks, buffers, touched_buffers
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import Spine, leaf_spines, leaves, spine_to


def written(leaf: Stmt) -> set[str]:
    """The buffers that a block, store or tile writes."""
    if isinstance(leaf, Block):
        return {r.buffer for r in leaf.writes}
    return touched_buffers(leaf)[1]


def read(leaf: Stmt) -> set[str]:
    """The buffers that a block, store or tile reads; what a reduction carries on is not read."""
    if isinstance(leaf, Block):
        return {r.buffer for r in leaf.reads}
    return touched_buffers(leaf)[0]


def writers(func: Func, buffer: str) -> list[Spine]:
    """The spines of all leaves that write a buffer, in order."""
    return [spine for spine in leaf_spines(func.body) if buffer in written(spine[-1])]


def readers(func: Func, buffer: str) -> list[Spine]:
    """The spines of all leaves that read a buffer, in order."""
    return [spine for spine in leaf_spines(func.body) if buffer in read(spine[-1])]


def has_independent_iterations(loop: For) -> bool:
    """Whether each block in a loop writes only what is indexed by the loop."""
    return all(_is_owned(block, loop) for block in blocks(loop))


def _is_owned(block: Block, loop: For) -> bool:
    bound = {it.name for it in block.iters if it.kind == "S" and loop.name in free_vars(it.binding)}
    return all(
        any(bound & free_vars(start) for start, _ in region.ranges) for region in block.writes
    )


def only_buffer(func: Func, block: Block, step: str) -> str:
    """The one buffer that `block` writes and nothing else does."""
    names = {r.buffer for r in block.writes}
    if len(names) != 1:
        message = f'block "{block.name}" writes {len(names)} buffers, {step} needs one'
        raise refuse(func, f"{step}.buffers", message, block)
    (buffer,) = names
    others = [s[-1] for s in writers(func, buffer) if s[-1] is not block]
    if others:
        message = f'block "{block.name}" is not the only one that writes {buffer!r}'
        raise refuse(func, f"{step}.writers", message, others[0])
    return buffer


def allocation(func: Func, buffer: str, step: str, at: Stmt | None = None) -> Spine:
    """The way to the allocation of a buffer; parameters are refused."""
    found = spine_to(func, lambda s: isinstance(s, Alloc) and s.buffer.name == buffer)
    if found is None:
        what = "a parameter" if any(b.name == buffer for b in func.params) else "not a buffer"
        known = ", ".join(n for n in buffers(func) if all(b.name != n for b in func.params))
        message = f"{buffer!r} is {what}, {step} needs an allocation of the function's own"
        raise refuse(func, f"{step}.allocation", message, at, help=f"it has {known or 'none'}")
    return found


Early = tuple[str, str, str]


def early_reads(func: Func) -> dict[Early, Stmt]:
    """Reads that precede a write: reader, buffer and writer by name, and the reader itself."""
    found: dict[Early, Stmt] = {}
    open_reads: dict[str, list[Stmt]] = {}
    for leaf in leaves(func.body):
        for buffer in written(leaf):
            for reader in open_reads.get(buffer, ()):
                found[_name(reader), buffer, _name(leaf)] = reader
        for buffer in read(leaf):
            open_reads.setdefault(buffer, []).append(leaf)
    return found


def _name(leaf: Stmt) -> str:
    return leaf.name if isinstance(leaf, Block) else ""


def check_order(before: Func, after: Func, step: str) -> None:
    """Refuse a step after which a block reads what is written only later."""
    known = early_reads(before)
    for (reader, buffer, writer), leaf in early_reads(after).items():
        if (reader, buffer, writer) not in known:
            message = f'block "{reader}" would read {buffer!r} before "{writer}" writes it'
            raise refuse(after, f"{step}.order", message, leaf)
