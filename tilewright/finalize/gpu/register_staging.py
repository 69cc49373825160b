"""Copies to shared memory in two halves, for machines without `cp.async`.

    for t in thread(256) { T[t] = X[k, t] }
      →
    for t in thread(256) { r[0] = X[k, t] }      before the products of the k-tile before
    for t in thread(256) { T[t] = r[0] }         behind them

What a thread has loaded waits in its registers while the products run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from tilewright.arith.expr import Expr, Load, as_int, const, product
from tilewright.arith.vector import Ramp
from tilewright.core.dtypes import DType
from tilewright.ir.loop.nodes import Buffer, For, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import FRAGMENT, PRIVATE, WARP_SIZE
from tilewright.ir.loop.walk import seq

# The bytes of a register.
WORD = 4


@dataclass(frozen=True)
class StagedCopies:
    """The registers of a thread that copies pass through, and both halves.

    Without `loads` nothing passes through registers.
    """

    registers: tuple[Buffer, ...]
    loads: Stmt | None
    stores: Stmt

    @property
    def words(self) -> int:
        """The registers that a thread needs."""
        return sum(map(words_of_thread, self.registers))


def words_of_thread(buffer: Buffer) -> int:
    """The registers of 32 bits that a buffer takes of each thread, none if it is not private."""
    size = as_int(product(buffer.shape))
    if buffer.scope not in PRIVATE or size is None:
        return 0
    threads = WARP_SIZE if buffer.scope == FRAGMENT else 1
    return -(-size * buffer.dtype.bytes // (WORD * threads))


def stage_in_registers(copies: Stmt, shared: Collection[str], prefix: str) -> StagedCopies:
    """Copies to `shared` buffers in two halves; whatever else there is belongs to the second."""
    halves = _Halves(frozenset(shared), prefix)
    loads, stores = halves.of(copies)
    assert stores is not None
    return StagedCopies(tuple(halves.registers()), loads, stores)


_Both = tuple[Stmt | None, Stmt | None]


class _Halves:
    """Splits statements; counts the elements that a thread holds, for each buffer it copies to."""

    def __init__(self, shared: frozenset[str], prefix: str) -> None:
        self.shared = shared
        self.prefix = prefix
        self.held: dict[str, tuple[DType, int]] = {}

    def registers(self) -> list[Buffer]:
        """What all that was split needs."""
        return [
            Buffer(self._name(buffer), dtype, (const(count),), "register")
            for buffer, (dtype, count) in self.held.items()
        ]

    def of(self, stmt: Stmt) -> _Both:
        """Both halves of a statement."""
        match stmt:
            case Seq(stmts):
                both = [self.of(s) for s in stmts]
                return _joined(a for a, _ in both), _joined(b for _, b in both)
            case For(kind="thread"):
                first, second = self.of(stmt.body)
                return _with_body(stmt, first), _with_body(stmt, second)
            case If(orelse=None):
                first, second = self.of(stmt.then)
                return _guarded(stmt, first), _guarded(stmt, second)
            case Store() if stmt.buffer in self.shared:
                return self._store(stmt)
        return None, stmt

    def _store(self, stmt: Store) -> _Both:
        dtype, first = self.held.get(stmt.buffer, (stmt.value.dtype, 0))
        lanes = stmt.value.lanes
        self.held[stmt.buffer] = (dtype, first + lanes)
        place: Expr = const(first) if lanes == 1 else Ramp(const(first), 1, lanes)
        name = self._name(stmt.buffer)
        kept = Load(name, (place,), dtype)
        return replace(stmt, buffer=name, indices=(place,)), replace(stmt, value=kept)

    def _name(self, buffer: str) -> str:
        return f"{self.prefix}.{buffer}"


def _joined(stmts: Iterable[Stmt | None]) -> Stmt | None:
    found = [s for s in stmts if s is not None]
    return seq(*found) if found else None


def _with_body(loop: For, body: Stmt | None) -> Stmt | None:
    return None if body is None else replace(loop, body=body)


def _guarded(stmt: If, then: Stmt | None) -> Stmt | None:
    return None if then is None else replace(stmt, then=then)
