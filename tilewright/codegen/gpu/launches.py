"""A finalized function for a GPU as launches: one for each nest, which run one after another.

The nests in a loop around grid loops are launched in every iteration, all before the next one.

A launch is as many blocks as its grid loop has iterations, one where it has none, each of as many
threads as its longest nest of thread loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, as_int, const, minimum
from tilewright.arith.simplify import simplify
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.storage_scope import ALIGNMENT
from tilewright.finalize.gpu.stream_k import StreamK, flags_name, partials_name, stream_k_of
from tilewright.finalize.gpu.warp_specialize import mainloop_of
from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM, PERSISTENT, PINGPONG
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Seq, Stmt, Tile
from tilewright.ir.loop.thread_mapping import (
    GRID,
    is_grid_sync,
    is_host_loop,
    threads_of,
)
from tilewright.ir.loop.walk import loops, statements, touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS

# Bytes of shared memory that a block may have in variables of a fixed size.
MOST_STATIC = 48 * 1024
# Threads that copy apart from the others: as many as get and give registers together.
APART_THREADS = 128
# Where variables begin in what is asked for: as far as instructions on matrices need it.
DYNAMIC_ALIGNMENT = 1024


@node
class TensorMap:
    """A buffer as a matrix for the engine that copies tiles of `box`, rows and columns, of it.

    It is the parameter with that `number`: `rows` of `row` elements, one behind the other.
    """

    number: int
    rows: Expr
    row: Expr
    box: tuple[int, int]


@node
class Launch:
    """What runs at once: `grid` blocks of `threads`, each the `body` with a `number` of its own.

    `number` is the loop variable that counts the blocks, "" where there is one. `shared` is the
    bytes of shared memory to be asked for: none where variables of a fixed size, which begin at any
    bank, do. What is in a `loop` is launched in each of its `steps`, and given the number of the
    step. `maps` are the matrices that it is given besides buffers and sizes. There should be
    registers for so many `resident` blocks on a multiprocessor; 0 where the assembler decides.
    Blocks that stay `together` all run at once: in the body they have loops of their own, in the
    loop over steps. Where more than `threads` are needed, some are `apart` and only copy; the
    blocks then go through `turns` of the body together, and so do several `groups` of threads in a
    block, each with turns of its own. Or they have equal `shares` of the steps of all turns.
    """

    name: str
    grid: Expr
    threads: int
    number: str
    body: Stmt
    loop: str = ""
    steps: Expr = const(1)
    maps: tuple[TensorMap, ...] = ()
    resident: int = 0
    together: bool = False
    apart: int = 0
    turns: Expr = const(0)
    groups: int = 1
    shares: StreamK | None = None

    @property
    def workers(self) -> int:
        """The threads of a block that do what the body says."""
        return self.threads * self.groups

    @property
    def all_threads(self) -> int:
        """The threads of a block."""
        return self.workers + self.apart

    @property
    def may_begin_early(self) -> bool:
        """Whether blocks may be placed while those before them still run.

        They go where there is room first. Where a multiprocessor has room for several that compute
        all the time, some get more of them than others, and all wait for those.
        """
        return not self.together and self.resident <= 1

    @property
    def touched(self) -> tuple[set[str], set[str]]:
        """The buffers that it reads, and those that it writes."""
        reads, writes = touched_buffers(self.body)
        handed = (
            {partials_name(self.number), flags_name(self.number)} if self.shares else set[str]()
        )
        return reads | handed, writes | handed

    @property
    def shared(self) -> int:
        """The bytes of shared memory that a launch must ask for."""
        *_, end = (0, *(start + size for start, size in shared_places(self.body).values()))
        return end if end > MOST_STATIC or reads_past_threads(self.body) else 0


def reads_past_threads(stmt: Stmt) -> bool:
    """Whether there are instructions that are told where operands lie in shared memory."""
    return any(isinstance(s, Tile) and INTRINSICS[s.intrinsic].proxy for _, s in statements(stmt))


def shared_places(stmt: Stmt) -> dict[str, tuple[int, int]]:
    """Where each variable of the shared memory begins, and its bytes."""
    found: dict[str, tuple[int, int]] = {}
    end = 0
    for _, s in statements(stmt):
        if isinstance(s, Alloc) and s.buffer.scope == "shared":
            count = as_int(s.buffer.shape[0])
            if count is None:
                raise CodegenError("codegen.shared", f"shared {s.buffer} must have a constant size")
            size = -(-max(count, 1) * s.buffer.dtype.bytes // ALIGNMENT) * ALIGNMENT
            start = -(-end // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT
            found[s.buffer.name] = start, size
            end = start + size
    return found


def launches(func: Func) -> tuple[Launch, ...]:
    """The launches of a function, in order."""
    nests = list(_nests(func.body, ()))
    # Two signs, as one and a number are another kernel of the same operators.
    names = [f"{symbol(func.name)}$${n}" if n else symbol(func.name) for n in range(len(nests))]
    return tuple(
        replace(_launch(name, *nest), maps=_maps(nest[0], func.params))
        for name, nest in zip(names, nests, strict=True)
    )


def _maps(nest: Stmt, params: Sequence[Buffer]) -> tuple[TensorMap, ...]:
    """The matrices that tiles are copied of, each once."""
    found = (tensor_map(s, params) for _, s in statements(nest) if isinstance(s, Tile))
    return tuple(dict.fromkeys(m for m in found if m is not None))


def tensor_map(tile: Tile, params: Sequence[Buffer]) -> TensorMap | None:
    """The matrix that a tile is copied of, `None` if threads do what it says."""
    box = INTRINSICS[tile.intrinsic].box
    if box is None:
        return None
    source = tile.srcs[0]
    ((_, row),) = source.ranges
    number = [p.name for p in params].index(source.buffer)
    return TensorMap(number, simplify(params[number].shape[0] // row), row, box)


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
        return Launch(name, const(_most_blocks(inner)), threads_of(nest), "", nest, together=True)
    if not (isinstance(inner, For) and inner.kind == "grid"):
        return Launch(name, const(1), threads_of(nest), "", nest, loop, steps)
    body = inner.body
    for alloc in reversed(allocs):
        body = Alloc(alloc.buffer, body)
    resident = MIN_BLOCKS_PER_SM.of(inner)
    about = (threads_of(body), inner.name, body, loop, steps)
    if mainloop_of(body) is None:
        return Launch(name, inner.extent, *about, resident=resident)
    apart = Launch(
        name, inner.extent, *about, resident=resident, apart=APART_THREADS, turns=inner.extent
    )
    shares = stream_k_of(inner)
    if shares is not None:
        return replace(apart, grid=const(shares.blocks), shares=shares)
    grid = simplify(minimum(inner.extent, const(PERSISTENT.of(inner))))
    return replace(apart, grid=grid, groups=PINGPONG.of(inner) or 1)


def _most_blocks(loop: Stmt) -> int:
    """How many blocks of threads a loop needs whose blocks stay."""
    counts = [as_int(s.extent) for s in loops(loop) if s.kind == GRID]
    known = [n for n in counts if n is not None]
    if len(known) < len(counts):
        raise CodegenError("gpu.staying", "blocks that stay must be of a constant number")
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
