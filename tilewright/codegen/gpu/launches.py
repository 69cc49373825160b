"""The kernel launches of a finalized function: one for each of its nests, in order.

The nests in a host loop around grid loops are launched in each of its iterations. A launch has a
block for each iteration of its grid loop, one where it has none, and as many threads in a block as
its longest nest of thread loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.storage_scope import ALIGNMENT
from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Region, Seq, Stmt, Tile
from tilewright.ir.loop.thread_mapping import (
    GRID,
    is_grid_sync,
    is_host_loop,
    threads_of,
)
from tilewright.ir.loop.walk import loops, statements_in, touched_buffers
from tilewright.ir.types import Shape
from tilewright.schedule.intrin.table import INTRINSICS

# Bytes of static shared memory that a block may have.
STATIC_SHARED_LIMIT = 48 * 1024
# The alignment of variables in dynamic shared memory: what wgmma and swizzled TMA need.
DYNAMIC_ALIGNMENT = 1024


@node
class TensorMap:
    """A tensor map for TMA: parameter `number` as a tensor of a `shape`, stored densely.

    `box` is what one copy moves, as long in each dimension.
    """

    number: int
    shape: Shape
    box: tuple[int, ...]


@node
class Launch:
    """One kernel launch: `grid` blocks of `threads`, each of which runs the `body`.

    `block_var` is the variable of the grid loop, "" where there is a single block. A launch in a
    host `loop` is repeated for each of its `steps` and given the step's index. `maps` are the
    tensor maps that it takes besides buffers and sizes. The registers are limited so that
    `min_blocks_per_sm` blocks fit on an SM; 0 leaves that to the assembler.

    A `cooperative_launch` has all blocks running at once, with a grid barrier in its loop.
    """

    name: str
    grid: Expr
    threads: int
    block_var: str
    body: Stmt
    loop: str = ""
    steps: Expr = const(1)
    maps: tuple[TensorMap, ...] = ()
    min_blocks_per_sm: int = 0
    cooperative_launch: bool = False

    @property
    def allows_pdl(self) -> bool:
        """Whether programmatic dependent launch may start blocks while the launch before runs.

        Early blocks go to the SMs that are free first. Where several compute-bound blocks fit on an
        SM, some SMs get more of them than others, and the launch waits for those.
        """
        return not self.cooperative_launch and self.min_blocks_per_sm <= 1

    @property
    def touched(self) -> tuple[set[str], set[str]]:
        """The buffers that it reads, and those that it writes."""
        return touched_buffers(self.body)

    @property
    def shared(self) -> int:
        """The bytes of dynamic shared memory; 0 where static variables do."""
        *_, end = (0, *(start + size for start, size in shared_offsets(self.body).values()))
        return end if end > STATIC_SHARED_LIMIT or uses_async_proxy(self.body) else 0


def uses_async_proxy(stmt: Stmt) -> bool:
    """Whether instructions read shared memory through the async proxy (wgmma, TMA)."""
    return any(
        isinstance(s, Tile) and INTRINSICS[s.intrinsic].async_proxy for s in statements_in(stmt)
    )


def shared_offsets(stmt: Stmt) -> dict[str, tuple[int, int]]:
    """The offset and the bytes of each variable in shared memory."""
    found: dict[str, tuple[int, int]] = {}
    end = 0
    for s in statements_in(stmt):
        if isinstance(s, Alloc) and s.buffer.scope == "shared":
            count = as_int(s.buffer.shape[0])
            if count is None:
                raise CodegenError("codegen.shared", f"shared {s.buffer} must have a constant size")
            size = -(-max(count, 1) * s.buffer.dtype.bytes // ALIGNMENT) * ALIGNMENT
            alignment = ALIGNMENT if s.buffer.dtype == I64 else DYNAMIC_ALIGNMENT  # mbarriers
            start = -(-end // alignment) * alignment
            found[s.buffer.name] = start, size
            end = start + size
    return found


def launches(func: Func) -> tuple[Launch, ...]:
    """The launches of a function, in order."""
    nests = list(_nests(func.body, ()))
    # Two signs: one and a number name another kernel of the same operators.
    names = [f"{symbol(func.name)}$${n}" if n else symbol(func.name) for n in range(len(nests))]
    return tuple(
        replace(_launch(name, *nest), maps=_maps(nest[0], func.params))
        for name, nest in zip(names, nests, strict=True)
    )


def _maps(nest: Stmt, params: Sequence[Buffer]) -> tuple[TensorMap, ...]:
    """The tensor maps of a nest, each once."""
    found = (tensor_map(s, params) for s in statements_in(nest) if isinstance(s, Tile))
    return tuple(dict.fromkeys(m for m in found if m is not None))


def tensor_map(tile: Tile, params: Sequence[Buffer]) -> TensorMap | None:
    """The tensor map of a TMA copy, `None` for other tiles."""
    box = INTRINSICS[tile.intrinsic].tma_box
    if box is None:
        return None
    source = tile.srcs[0]
    number = [p.name for p in params].index(source.buffer)
    if len(source.ranges) > 1:
        return TensorMap(number, tuple(size for _, size in source.ranges), box)
    ((_, row),) = source.ranges
    return TensorMap(number, (simplify(params[number].shape[0] // row), row), box)


def tma_coordinates(source: Region) -> tuple[Expr, ...]:
    """Where a TMA copy begins in its tensor, the last dimension first."""
    if len(source.ranges) > 1:
        return tuple(start for start, _ in reversed(source.ranges))
    ((start, row),) = source.ranges
    return start % row, start // row


def symbol(name: str) -> str:
    """A name as PTX allows it."""
    return re.sub(r"[^A-Za-z0-9_]", "$", name)


def _launch(name: str, nest: Stmt, around: For | None) -> Launch:
    loop, steps = ("", const(1)) if around is None else (around.name, around.extent)
    allocs: list[Alloc] = []
    inner = nest
    while isinstance(inner, Alloc):
        allocs.append(inner)
        inner = inner.body
    if is_grid_sync(inner):
        return Launch(
            name, const(_most_blocks(inner)), threads_of(nest), "", nest, cooperative_launch=True
        )
    if not (isinstance(inner, For) and inner.kind == "grid"):
        return Launch(name, const(1), threads_of(nest), "", nest, loop, steps)
    body = inner.body
    for alloc in reversed(allocs):
        body = Alloc(alloc.buffer, body)
    occupancy = MIN_BLOCKS_PER_SM.of(inner)
    about = (threads_of(body), inner.name, body, loop, steps)
    return Launch(name, inner.extent, *about, min_blocks_per_sm=occupancy)


def _most_blocks(loop: Stmt) -> int:
    """The blocks of a cooperative launch: as many as its largest grid loop has."""
    counts = [as_int(s.extent) for s in loops(loop) if s.kind == GRID]
    known = [n for n in counts if n is not None]
    if len(known) < len(counts):
        raise CodegenError("gpu.grid-sync", "a grid barrier needs a constant number of blocks")
    return max(known)


def _nests(
    stmt: Stmt, allocs: tuple[Alloc, ...], around: For | None = None
) -> Iterator[tuple[Stmt, For | None]]:
    """The nests of a function, each with the allocations that are its own and the loop it is in."""
    if isinstance(stmt, Alloc):
        yield from _nests(stmt.body, (*allocs, stmt), around)
        return
    nests = stmt.stmts if isinstance(stmt, Seq) else (stmt,)
    uses = [set().union(*touched_buffers(nest)) for nest in nests]
    for alloc in allocs:
        if sum(alloc.buffer.name in used for used in uses) > 1:
            message = f"{alloc.buffer} is read by another launch than the one that writes it"
            raise CodegenError("gpu.launches", message)
    for nest, used in zip(nests, uses, strict=True):
        own = tuple(a for a in allocs if a.buffer.name in used)
        often = around is None and is_host_loop(nest) and not is_grid_sync(nest)
        if often and isinstance(nest, For):
            yield from _nests(nest.body, own, nest)
            continue
        for alloc in reversed(own):
            nest = Alloc(alloc.buffer, nest)
        yield nest, around
