"""Thread blocks without roles at run time: what their threads do between two barriers.

Here threads run one after another, statement by statement; on a machine nothing but a barrier
orders them. So two threads must not access an element of shared memory between two barriers if one
of them writes it.

Copies that are under way write their elements at any time: those of a thread (`cp.async`) until it
has waited for their group, after which they are its own writes; those of TMA until all threads have
waited for the mbarrier. An asynchronous product reads its operands until it is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.agents import Mbarrier
from tilewright.ir.scalar_semantics import Array

# In place of a thread: several, and those of before the first barrier.
SEVERAL, NOBODY = -2, -1


@dataclass
class _Shadow:
    """Of each element of a buffer: who accessed it last, between which barriers.

    `changed` is the step of the last write, `copying` whether a copy to it is under way.
    """

    name: str
    writer: Array
    written: Array
    reader: Array
    read: Array
    changed: Array
    copying: Array

    @staticmethod
    def of(name: str, size: tuple[int, ...]) -> _Shadow:
        """Nothing has happened yet."""
        writer, written, reader, read, changed = np.full((5, *size), NOBODY, np.int32)
        copying = np.zeros(size, np.bool_)
        return _Shadow(name, writer, written, reader, read, changed, copying)


Place = tuple[_Shadow, Any]
"""Elements of a buffer."""


class LockstepBlock:
    """A block of threads, of which `thread` runs: the barriers it has passed, what is under way."""

    def __init__(self, number: object) -> None:
        self.name = f"block {number}"
        self.thread = 0
        self.barriers = 0
        self.steps = 0
        self.shadows: dict[str, _Shadow] = {}
        # The copies of threads since the last group, and the groups.
        self.started: list[tuple[Place, int]] = []
        self.groups: list[list[tuple[Place, int]]] = []
        # Those that are initialized, with the barriers before; the copies of each, with its phase.
        self.mbarriers: dict[tuple[str, int], tuple[Mbarrier, int]] = {}
        self.loads: dict[tuple[str, int], list[tuple[Place, int]]] = {}
        # By the thread that began them: what products read, their accumulators, and the step.
        self.products: dict[int, list[tuple[list[Place], str, int]]] = {}

    def barrier(self) -> None:
        """All threads wait for one another."""
        self.barriers += 1

    # Accesses to shared memory.

    def read(self, name: str, array: Array, place: Any) -> None:
        """Note a read."""
        self._read((self._shadow(name, array), place))

    def write(self, name: str, array: Array, place: Any) -> None:
        """Note a write."""
        shadow = self._shadow(name, array)
        self._may_write(shadow, place)
        shadow.writer[place], shadow.written[place] = self.thread, self.barriers

    def _read(self, where: Place) -> None:
        shadow, place = where
        self._undisturbed(shadow, place, "reads")
        others = (shadow.read[place] == self.barriers) & (shadow.reader[place] != self.thread)
        shadow.reader[place] = np.where(others, SEVERAL, self.thread)
        shadow.read[place] = self.barriers

    def _may_write(self, shadow: _Shadow, place: Any) -> None:
        self._undisturbed(shadow, place, "writes")
        reads = (shadow.read[place] == self.barriers) & (shadow.reader[place] != self.thread)
        if np.any(reads):
            self._race(shadow, "writes", "another reads it")
        self.steps += 1
        shadow.changed[place] = self.steps

    def _undisturbed(self, shadow: _Shadow, place: Any, does: str) -> None:
        """No copy, and no other thread since the last barrier, writes some elements."""
        if np.any(shadow.copying[place]):
            self._race(shadow, does, "a copy writes it")
        written = shadow.written[place] == self.barriers
        if np.any(written & (shadow.writer[place] != self.thread)):
            self._race(shadow, does, "another writes it")

    def _shadow(self, name: str, array: Array) -> _Shadow:
        """What is known of a buffer, which has its place in memory for all of a kernel."""
        found = self.shadows.get(name)
        if found is None:
            found = self.shadows[name] = _Shadow.of(name, array.shape)
        return found

    def _race(self, shadow: _Shadow, does: str, other: str) -> NoReturn:
        raise ExecutionError(
            "interp.race",
            f"thread {self.thread} of {self.name} {does} {shadow.name!r} while {other}",
            help="a barrier, behind a wait for what is under way, must order them",
        )

    # Copies of threads.

    def copy_async(self, name: str, array: Array, place: Any) -> None:
        """Start a copy."""
        shadow = self._shadow(name, array)
        self._may_write(shadow, place)
        shadow.copying[place] = True
        self.started.append(((shadow, place), self.thread))

    def commit(self) -> None:
        """What all threads have started since the last time is a group."""
        self.groups.append(self.started)
        self.started = []

    def wait_copies(self, pending: int) -> None:
        """All threads wait for their copies, but for those of the last groups."""
        while len(self.groups) > pending:
            for (shadow, place), thread in self.groups.pop(0):
                shadow.copying[place] = False
                shadow.writer[place], shadow.written[place] = thread, self.barriers

    # Copies by TMA.

    def start_mbarriers(self, name: str, array: Array, first: int, number: int, count: int) -> None:
        """Initialize mbarriers."""
        for n in range(first, first + number):
            self.mbarriers[name, n] = Mbarrier(f"{name}[{n}]", count), self.barriers

    def tma_copy(
        self, name: str, array: Array, place: Any, barrier: str, mbarriers: Array, index: int
    ) -> None:
        """Start a copy that arrives at an mbarrier."""
        mbarrier, _ = self._mbarrier(barrier, index)
        shadow = self._shadow(name, array)
        self._may_write(shadow, place)
        shadow.copying[place] = True
        self.loads.setdefault((barrier, index), []).append(((shadow, place), mbarrier.phase))
        mbarrier.arrive(1, {})

    def wait(self, name: str, array: Array, index: int, parity: int) -> None:
        """All threads wait for the phase of a parity."""
        mbarrier, started = self._mbarrier(name, index)
        if started == self.barriers:
            message = f"a thread waits for {mbarrier.name}, which another may not have initialized"
            raise ExecutionError("interp.mbarrier", message)
        if mbarrier.phase % 2 == parity:
            message = f"{self.name} waits for parity {parity} of {mbarrier.name} for ever"
            raise ExecutionError("interp.deadlock", message)
        loads = self.loads.get((name, index), [])
        for (shadow, place), phase in loads:
            if phase < mbarrier.phase:
                shadow.copying[place] = False
        self.loads[name, index] = [x for x in loads if x[1] >= mbarrier.phase]

    def _mbarrier(self, name: str, index: int) -> tuple[Mbarrier, int]:
        found = self.mbarriers.get((name, index))
        if found is None:
            raise ExecutionError("interp.mbarrier", f"{name}[{index}] is not initialized")
        return found

    # Asynchronous products.

    def product(
        self, reads: Sequence[tuple[str, Array, Any]], accumulators: str, in_flight: int
    ) -> None:
        """Issue a product; at most so many are in flight behind it, or it itself has ended."""
        places = [(self._shadow(name, array), place) for name, array, place in reads]
        for where in places:
            self._read(where)
        own = self.products.setdefault(self.thread, [])
        own.append((places, accumulators, self.steps))
        self.wait_products(in_flight)

    def wait_products(self, in_flight: int) -> None:
        """Wait for all products of a thread but the last ones."""
        own = self.products.get(self.thread, [])
        while len(own) > in_flight:
            places, _, step = own.pop(0)
            for shadow, place in places:
                if np.any(shadow.changed[place] > step):
                    self._race(shadow, "writes", "a product reads it")
                self._read((shadow, place))

    def touch(self, names: Sequence[str]) -> None:
        """Note that threads access registers."""
        for own in self.products.values():
            for _, accumulators, _ in own:
                if accumulators in names:
                    message = f"{self.name} accesses {accumulators}, which a product changes"
                    raise ExecutionError("interp.in-flight", message)
