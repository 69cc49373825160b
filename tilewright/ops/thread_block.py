"""What the threads of a block do, spelled out by operators that need them to work together.

    block = ThreadBlock("scan", rows=4, lanes=32)
    block.each(lambda row, lane: ...)        for row in thread(4) { for lane in thread(32) { ... } }
    block.reduced(lambda lane: ...)          for row in thread(4) { for lane in allreduce(32) ... }

A loop function of such nests stands in a block over the thread blocks of the grid; buffers that it
allocates outside of thread loops are those of each thread (`@register`), or shared.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import Expr, Load, Var, const
from tilewright.core.dtypes import DType
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import ALLREDUCE, THREAD, WARP_SIZE


class ThreadBlock:
    """Makes the nests of a block that has some rows, each with some lanes; powers of two both."""

    def __init__(self, name: str, rows: int, lanes: int) -> None:
        self.name, self.rows, self.lanes = name, rows, lanes
        self.count = 0
        self.own: list[Buffer] = []

    def fresh(self, word: str) -> Var:
        """The variable of a loop."""
        self.count += 1
        return Var(f"{self.name}.{word}{self.count}")

    def register(self, name: str, dtype: DType, size: int = 1) -> Buffer:
        """Registers of each thread."""
        return self._buffer(name, dtype, size, "register")

    def shared(self, name: str, dtype: DType, size: int) -> Buffer:
        """Memory that the threads share."""
        return self._buffer(name, dtype, size, "shared")

    def _buffer(self, name: str, dtype: DType, size: int, scope: str) -> Buffer:
        buffer = Buffer(f"{self.name}.{name}", dtype, (const(size),), scope)
        self.own.append(buffer)
        return buffer

    def each(self, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """Each thread runs what `body` gives for its row and lane."""
        row, lane = self.fresh("row"), self.fresh("lane")
        return self._rows(row, For(lane.name, const(self.lanes), THREAD, body(row, lane)))

    def reduced(self, *stores: Store) -> Stmt:
        """An all-reduce over the lanes of each row."""
        row, lane = self.fresh("row"), self.fresh("lane")
        return self._rows(row, For(lane.name, const(self.lanes), ALLREDUCE, Seq(stores)))

    def reduced_in_groups(self, lanes: int, *stores: Store) -> Stmt:
        """An all-reduce over each group of so many neighbouring threads."""
        group, lane = self.fresh("group"), self.fresh("lane")
        nest = For(lane.name, const(lanes), ALLREDUCE, Seq(stores))
        return For(group.name, const(self.rows * self.lanes // lanes), THREAD, nest)

    def reduced_in_warps(self, *stores: Store) -> Stmt:
        """An all-reduce over the lanes of each row that are in one warp."""
        return self.reduced_in_groups(min(self.lanes, WARP_SIZE), *stores)

    def _rows(self, row: Var, nest: Stmt) -> Stmt:
        return For(row.name, const(self.rows), THREAD, nest)

    def repeat(self, kind: str, count: Expr | int, body: Callable[[Expr], Stmt]) -> Stmt:
        """A loop within a thread, or around nests of thread loops."""
        step = self.fresh("step")
        extent = const(count) if isinstance(count, int) else count
        return For(step.name, extent, kind, body(step))

    def allocated(self, body: Stmt) -> Stmt:
        """`body` with all buffers that were made."""
        for buffer in reversed(self.own):
            body = Alloc(buffer, body)
        return body


def at(buffer: Buffer, place: Expr | int = 0) -> Load:
    """An element of a buffer."""
    index = const(place) if isinstance(place, int) else place
    return Load(buffer.name, (index,), buffer.dtype)


def put(buffer: Buffer, value: Expr, place: Expr | int = 0) -> Store:
    """Write an element of a buffer."""
    return Store(buffer.name, at(buffer, place).indices, value)
