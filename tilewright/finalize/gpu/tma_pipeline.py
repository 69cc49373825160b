"""A ring of stages that TMA copies fill and warps read, with two mbarriers a stage.

    alloc T: f16[3 * size] @shared      producer                     consumers
    alloc T.full: i64[3] @shared          wait for T.empty[s]          wait for T.full[s]
    alloc T.empty: i64[3] @shared         copy a k-tile to stage s     read stage s
                                            → arrives at T.full[s]     arrive at T.empty[s]

`full` counts the copies, and their bytes, `empty` the consumer warps that are done with the stage.
K-tile number n of all that go through the ring takes stage n % 3; the parity of its phase is
n // 3 % 2. A stage is empty at first, so producers wait for the other parity.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.expr import Expr, Load, cast, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, U32
from tilewright.core.node import node
from tilewright.finalize.gpu.select_stage import counted_by, one_element, select_stage
from tilewright.ir.loop.nodes import (
    Alloc,
    Buffer,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.walk import seq, substitute_stmt


@node
class TmaPipeline:
    """The ring: buffers of one stage, the copies that fill it, and the number of stages."""

    buffers: tuple[Buffer, ...]
    copies: tuple[Tile, ...]
    stages: int

    @property
    def full(self) -> str:
        """The mbarriers that the copies arrive at."""
        return f"{self.buffers[0].name}.full"

    @property
    def empty(self) -> str:
        """The mbarriers that the consumer warps arrive at."""
        return f"{self.buffers[0].name}.empty"

    def all_stages(self) -> tuple[Buffer, ...]:
        """The buffers with all their stages."""
        return tuple(
            Buffer(b.name, b.dtype, (simplify(b.shape[0] * self.stages),), b.scope)
            for b in self.buffers
        )

    def mbarriers(self) -> tuple[Buffer, ...]:
        """The buffers of mbarriers."""
        return tuple(mbarrier_buffer(name, self.stages) for name in (self.full, self.empty))

    def start(self, consumer_warps: int) -> tuple[Stmt, ...]:
        """The mbarriers' initialization; so many warps read a stage."""
        counts = {self.full: len(self.copies), self.empty: consumer_warps}
        return tuple(start_mbarriers(name, self.stages, count) for name, count in counts.items())

    def wait_full(self, k_tile: Expr) -> Stmt:
        """Wait until a k-tile has come."""
        return MbarrierWait(self._stage(self.full, k_tile), k_tile // self.stages % 2)

    def wait_empty(self, k_tile: Expr) -> Stmt:
        """Wait until the stage of a k-tile is free."""
        return MbarrierWait(self._stage(self.empty, k_tile), (k_tile // self.stages + 1) % 2)

    def release(self, k_tile: Expr, mask: Expr | None = None) -> Stmt:
        """The warps are done with the stage of a k-tile."""
        return MbarrierArrive(self._stage(self.empty, k_tile), mask)

    def copy(self, k_tile: Expr, values: Mapping[str, Expr]) -> Stmt:
        """Copy a k-tile as soon as its stage is empty; `values` say which."""
        copies = (self.in_stage(substitute_stmt(c, values), k_tile) for c in self.copies)
        full = self._stage(self.full, k_tile)
        return seq(self.wait_empty(k_tile), *(counted_by(c, full) for c in copies))

    def in_stage(self, stmt: Stmt, k_tile: Expr) -> Stmt:
        """A statement with its accesses in the stage of a k-tile."""
        return select_stage(stmt, {b.name: b.shape[0] for b in self.buffers}, k_tile % self.stages)

    def _stage(self, mbarriers: str, k_tile: Expr) -> Region:
        return one_element(mbarriers, k_tile % self.stages)


def mbarrier_buffer(name: str, count: int) -> Buffer:
    """A buffer of so many mbarriers."""
    return Buffer(name, I64, (const(count),), "shared")


def start_mbarriers(name: str, number: int, count: int) -> Stmt:
    """So many mbarriers, each of whose phases has `count` arrivals."""
    return MbarrierInit(Region(name, ((const(0), const(number)),)), count)


@node
class Counter:
    """A number that each thread counts on, from tile to tile: the k-tiles that came before.

    It has 32 bits, so that dividing by a number of stages takes few instructions.
    """

    name: str

    def around(self, start: Expr, body: Stmt) -> Stmt:
        """`body` with the counter, which starts with a value."""
        buffer = Buffer(self.name, U32, (const(1),), "register")
        return Alloc(buffer, seq(self._store(cast(U32, start)), body))

    def plus(self, more: Expr) -> Expr:
        """The number `more` behind the counter."""
        return cast(I64, self._value + cast(U32, more))

    def advance(self, more: Expr) -> Stmt:
        """Count on."""
        return self._store(self._value + cast(U32, more))

    @property
    def _value(self) -> Expr:
        return Load(self.name, (const(0),), U32)

    def _store(self, value: Expr) -> Stmt:
        return Store(self.name, (const(0),), value)
