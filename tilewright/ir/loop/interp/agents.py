"""Roles at run time: agents that wait for each other, and the races between them.

An agent is what runs at once with others: a role of a block, or a group of it. It is a generator
that yields where it waits. Each has a vector clock: of every agent, the last step that is known to
have ended before. Mbarriers and flags hand clocks on. Two accesses to one element, at least one of
them a write, must be ordered so; otherwise they race, whatever the order in which they ran here.

A TMA copy is written by an agent of its own, which only the mbarrier it arrives at hands on. An
asynchronous product reads its operands until it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from tilewright.core.errors import ExecutionError
from tilewright.ir.scalar_semantics import Array

Steps = Generator[None, None, None]
Clock = dict[int, int]


def _join(clock: Clock, other: Clock) -> None:
    for agent, step in other.items():
        clock[agent] = max(step, clock.get(agent, 0))


@dataclass
class Mbarrier:
    """An mbarrier: arrivals that complete a phase, those so far, and the number of the phase."""

    name: str
    count: int
    arrived: int = 0
    phase: int = 0
    # Whether all threads know that it is initialized.
    is_known: bool = False
    # What is known by those that arrived in this phase, and by those of all before it.
    arriving: Clock = field(default_factory=dict)
    completed: Clock = field(default_factory=dict)

    def arrive(self, number: int, clock: Clock) -> None:
        """So many arrivals of an agent."""
        _join(self.arriving, clock)
        self.arrived += number
        if self.arrived > self.count:
            message = f"{self.arrived} arrive at {self.name}, whose phases have {self.count}"
            raise ExecutionError("interp.mbarrier", message)
        if self.arrived == self.count:
            _join(self.completed, self.arriving)
            self.arriving, self.arrived, self.phase = {}, 0, self.phase + 1


@dataclass
class _Shadow:
    """Of each element of a buffer: who wrote it last and when, and when each agent read it last."""

    array: Array
    writer: Array
    written: Array
    reads: dict[int, Array] = field(default_factory=dict)

    @staticmethod
    def of(array: Array) -> _Shadow:
        """Nothing has happened yet."""
        return _Shadow(array, np.full(array.shape, -1, np.int32), np.zeros(array.shape, np.int32))


class LaunchState:
    """What the blocks of a launch share: agents by number, mbarriers, flags, shadows of buffers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.mbarriers: dict[tuple[int, int], Mbarrier] = {}
        self.flags: dict[tuple[int, int], Clock] = {}
        self.shadows: dict[int, _Shadow] = {}
        # The copies that each agent that stands for copies has made.
        self.copies: dict[int, int] = {}
        # Steps that bring the launch forward: while none is made, everybody waits.
        self.progress = 0

    def agent(self, name: str) -> int:
        """The number of a new agent."""
        self.names.append(name)
        return len(self.names) - 1

    def start_mbarriers(self, name: str, array: Array, first: int, number: int, count: int) -> None:
        """Initialize mbarriers."""
        for n in range(first, first + number):
            self.mbarriers[id(array), n] = Mbarrier(f"{name}[{n}]", count)

    def barrier(self) -> None:
        """The threads of a block wait for one another before its roles begin."""
        for mbarrier in self.mbarriers.values():
            mbarrier.is_known = True

    def run(self, block: str, roles: Sequence[tuple[str, int, Callable[[Agent], Steps]]]) -> None:
        """Run the roles of a block until all have ended."""
        agents = [
            Agent(self, f"{name} of block {block}" if block else name, warps)
            for name, warps, _ in roles
        ]
        steps = [body(agent) for agent, (_, _, body) in zip(agents, roles, strict=True)]
        before = -1
        for waiting in interleave(self, agents, steps):
            if self.progress == before:
                what = "; ".join(f"{a.name} {a.waiting}" for a in waiting if a.waiting)
                raise ExecutionError("interp.deadlock", f"everybody waits: {what}")
            before = self.progress

    def shadow(self, array: Array) -> _Shadow:
        """What is known of a buffer; it is kept, so that no other has its place in memory."""
        found = self.shadows.get(id(array))
        if found is None:
            found = self.shadows[id(array)] = _Shadow.of(array)
        return found


def interleave(
    launch: LaunchState, agents: Iterable[Agent], steps: Iterable[Steps]
) -> Generator[list[Agent], None, None]:
    """Run agents round-robin, each until it waits; yields those that wait after each round."""
    left = list(zip(agents, steps, strict=True))
    while left:
        running, left = left, []
        for agent, own in running:
            try:
                next(own)
                left.append((agent, own))
            except StopIteration:
                launch.progress += 1
        if left:
            yield [x for agent, _ in left for x in agent.waiters()]


class Agent:
    """A role of a block, or a group of one: its clock, and what it has in flight."""

    def __init__(
        self, launch: LaunchState, name: str, warps: int, clock: Clock | None = None
    ) -> None:
        self.launch, self.name, self.warps = launch, name, warps
        self.number = launch.agent(name)
        self.clock: Clock = {**(clock or {}), self.number: 1}
        self.waiting = ""
        self.children: list[Agent] = []
        # Asynchronous products: what each reads, and the buffers of its accumulators.
        self.in_flight: list[tuple[list[tuple[str, Array, Any]], str]] = []
        # The copies of each mbarrier have an agent.
        self.engines: dict[int, int] = {}

    def waiters(self) -> list[Agent]:
        """It, or its groups."""
        return [x for c in self.children for x in c.waiters()] or [self]

    def groups(self, name: str, count: int, body: Callable[[Agent, int], Steps]) -> Steps:
        """Run the groups of a role."""
        self.children = [
            Agent(self.launch, f"{name} {n} of {self.name}", self.warps // count, self.clock)
            for n in range(count)
        ]
        steps = [body(child, n) for n, child in enumerate(self.children)]
        for _ in interleave(self.launch, self.children, steps):
            yield
        for child in self.children:
            _join(self.clock, child.clock)
        self.children = []

    # Waiting for others.

    def arrive(self, name: str, array: Array, index: int, arrivals: int) -> None:
        """Arrive at an mbarrier."""
        self._mbarrier(name, array, index).arrive(arrivals, self.clock)
        self._step()

    def wait(self, name: str, array: Array, index: int, parity: int) -> Steps:
        """Wait for the phase of a parity."""
        mbarrier = self._mbarrier(name, array, index)
        while mbarrier.phase % 2 == parity:
            self.waiting = f"waits for parity {parity} of {mbarrier.name}"
            yield
        self._go_on(mbarrier.completed)

    def signal(self, array: Array, index: int) -> None:
        """Publish what was done before by a flag."""
        array[index] += 1
        _join(self.launch.flags.setdefault((id(array), index), {}), self.clock)
        self._step()

    def await_flag(self, name: str, array: Array, index: int, count: int) -> Steps:
        """Wait until a flag is large enough."""
        while array[index] < count:
            self.waiting = f"awaits {name}[{index}], which is {array[index]}, not {count}"
            yield
        self._go_on(self.launch.flags.get((id(array), index), {}))

    def _mbarrier(self, name: str, array: Array, index: int) -> Mbarrier:
        found = self.launch.mbarriers.get((id(array), index))
        if found is None:
            raise ExecutionError("interp.mbarrier", f"{name}[{index}] is not initialized")
        if not found.is_known:
            message = f"no barrier is between {self.name} and the initialization of {found.name}"
            raise ExecutionError("interp.mbarrier", message)
        return found

    def _go_on(self, known: Clock) -> None:
        _join(self.clock, known)
        self.waiting = ""
        self.launch.progress += 1

    def _step(self) -> None:
        """What it does from here on is not known to those it has told of what was before."""
        self.clock[self.number] += 1
        self.launch.progress += 1

    # Accesses to memory that several agents share.

    def read(self, name: str, array: Array, place: Any) -> None:
        """Note a read."""
        self._read(name, array, place, self.number, self.clock)

    def write(self, name: str, array: Array, place: Any) -> None:
        """Note a write."""
        self._write(name, array, place, self.number, self.clock)

    def tma_copy(
        self, name: str, array: Array, place: Any, barrier: str, mbarriers: Array, index: int
    ) -> None:
        """Note a write by a TMA copy, which arrives at an mbarrier."""
        mbarrier = self._mbarrier(barrier, mbarriers, index)
        engine = self.engines.get(id(mbarrier))
        if engine is None:
            engine = self.engines[id(mbarrier)] = self.launch.agent(f"a copy by {self.name}")
        step = self.launch.copies[engine] = self.launch.copies.get(engine, 0) + 1
        clock = {**self.clock, engine: step}
        self._write(name, array, place, engine, clock)
        mbarrier.arrive(1, clock)
        self._step()

    def product(
        self, reads: list[tuple[str, Array, Any]], accumulators: str, in_flight: int
    ) -> None:
        """Issue a product; at most so many are in flight behind it, or it itself has ended."""
        for name, array, place in reads:
            self.read(name, array, place)
        self.in_flight.append((reads, accumulators))
        self.wait_products(in_flight)

    def wait_products(self, in_flight: int) -> None:
        """Wait for all products in flight but the last ones."""
        while len(self.in_flight) > in_flight:
            reads, _ = self.in_flight.pop(0)
            for name, array, place in reads:
                self.read(name, array, place)

    def touch(self, names: Sequence[str]) -> None:
        """Note that threads access registers."""
        for _, accumulators in self.in_flight:
            if accumulators in names:
                message = f"{self.name} accesses {accumulators}, which a product in flight changes"
                raise ExecutionError("interp.in-flight", message)

    def _read(self, name: str, array: Array, place: Any, agent: int, clock: Clock) -> None:
        shadow = self.launch.shadow(array)
        self._ordered(shadow, place, clock, name, agent, "reads")
        reads = shadow.reads.get(agent)
        if reads is None:
            reads = shadow.reads[agent] = np.zeros(array.shape, np.int32)
        reads[place] = clock[agent]

    def _write(self, name: str, array: Array, place: Any, agent: int, clock: Clock) -> None:
        shadow = self.launch.shadow(array)
        self._ordered(shadow, place, clock, name, agent, "writes")
        for reader, steps in shadow.reads.items():
            if reader != agent and (np.asarray(steps[place]) > clock.get(reader, 0)).any():
                self._race(name, agent, "writes", reader, "reads")
        shadow.writer[place], shadow.written[place] = agent, clock[agent]

    def _ordered(
        self, shadow: _Shadow, place: Any, clock: Clock, name: str, agent: int, does: str
    ) -> None:
        """Whether the last write of some elements is known to have ended."""
        writers, steps = np.asarray(shadow.writer[place]), np.asarray(shadow.written[place])
        for writer in np.unique(writers):
            if writer in (-1, agent):
                continue
            if (steps[writers == writer] > clock.get(int(writer), 0)).any():
                self._race(name, agent, does, int(writer), "writes")

    def _race(self, name: str, agent: int, does: str, other: int, did: str) -> NoReturn:
        one, two = self.launch.names[agent], self.launch.names[other]
        raise ExecutionError(
            "interp.race",
            f"{one} {does} {name!r} while {two} {did} it",
            help="an mbarrier, or a flag between blocks, must order them",
        )


def rows(start: int, height: int, stride: int, width: int) -> Array:
    """The places of a matrix in a flat buffer."""
    found: Array = start + np.arange(height)[:, None] * stride + np.arange(width)
    return found
