"""Roles as Python source: a generator for each role and group, which yields where it waits.

    roles {                                        def role1(me):
      consumer warps(4) {                              yield from me.wait('T.full', b5, 0, 1)
        mbarrier_wait T.full[0] parity 1               t6 = b4[0]
        S[0] = T[0]                        →           me.read('T', b4, (0,))
      }                                                ...
      producer warps(1) { ... }                    def role2(me): ...
    }                                              launch.run('0', [('consumer', 4, role1), ...])

`agents.py` runs them and finds races. What only one agent touches is not noted. Of blocks without
roles `lockstep.py` notes what each thread does in shared memory.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tilewright.core.node import node
from tilewright.ir.loop.interp import agents, lockstep
from tilewright.ir.loop.interp.exprs import ExprWriter
from tilewright.ir.loop.nodes import (
    Alloc,
    Await,
    Barrier,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Roles,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.thread_mapping import FRAGMENT, PRIVATE, SHARED
from tilewright.ir.loop.tiles import is_copy
from tilewright.ir.loop.walk import buffers, statements_in, touched_buffers

_SYNCHRONIZE = (MbarrierArrive, MbarrierWait, Signal, Await)


@node
class TileFacts:
    """What a tile statement touches and leaves in flight, whatever it computes.

    `shapes` are the rows and columns of its sources and of what it writes, in flat buffers with a
    row stride. `in_flight` is the number of asynchronous products that may still run behind it,
    `None` where it has nothing to do with them. `copied` are the bytes of a copy that is started
    and not waited for.
    """

    shapes: tuple[tuple[int, int], ...]
    in_flight: int | None = None
    copied: int = 0


FactsOf = Callable[[Tile], TileFacts]


def has_roles(stmt: Stmt) -> bool:
    """Whether anything in a statement runs in roles."""
    return any(isinstance(s, Roles) for s in statements_in(stmt))


def shared_among_agents(func: Func) -> set[str]:
    """The buffers that are written and not private; mbarriers and flags are no memory."""
    written = touched_buffers(func.body)[1]
    written |= {s.buffer for s in statements_in(func.body) if isinstance(s, Store)}
    written |= {s.dst.buffer for s in statements_in(func.body) if isinstance(s, Tile)}
    waited = set[str]()
    for s in statements_in(func.body):
        if isinstance(s, MbarrierInit | MbarrierArrive | MbarrierWait):
            waited.add(s.barrier.buffer)
        if isinstance(s, Signal | Await):
            waited.add(s.flag.buffer)
    return {n for n, b in buffers(func).items() if b.scope not in PRIVATE} & written - waited


class RoleWriter(ExprWriter):
    """Writes roles, and what synchronizes them.

    With `facts`, only that: tile statements are noted as a whole and compute nothing.
    """

    def __init__(self, func: Func, facts: FactsOf | None) -> None:
        super().__init__()
        self.facts = facts
        self.has_roles = has_roles(func.body)
        self.noted = shared_among_agents(func) if self.has_roles else set[str]()
        self.declared: Mapping[str, Buffer] = buffers(func)
        self.scope |= {"agents": agents, "lockstep": lockstep}
        # How many warps a role has at this point; 0 outside of roles.
        self.warps = 0
        # Whether this is a block without roles, whose threads are noted.
        self.lockstep = False
        self.block_index = "''"
        self.in_threads = False

    @abstractmethod
    def stmt(self, s: Stmt) -> None:
        """Write a statement."""

    @abstractmethod
    def variable(self, name: str) -> str:
        """The Python name of a variable."""

    @abstractmethod
    def apart(self) -> Any:
        """A context in which statements are those of a function of its own."""

    def let(self, s: Let) -> None:
        """A variable with a value."""
        self.forget()
        value = self.atom(s.value)
        self.line(f"{self.variable(s.name)} = {value}")
        self.stmt(s.body)

    @contextmanager
    def launched(self, s: For) -> Iterator[None]:
        """A launch: its blocks have roles, or threads that are noted, or nothing of that."""
        outer = self.noted, self.lockstep, self.has_roles
        self.has_roles = has_roles(s.body)
        if self.has_roles:
            self.line("launch = agents.LaunchState()")
        elif self.facts is not None:
            inside = (x.buffer for x in statements_in(s.body) if isinstance(x, Alloc))
            self.lockstep = True
            self.noted = {b.name for b in inside if b.scope == SHARED}
        yield
        self.noted, self.lockstep, self.has_roles = outer

    def enter_lockstep(self, number: str) -> None:
        """A block of such a launch begins."""
        if self.lockstep:
            self.line(f"me = lockstep.LockstepBlock({number})")

    def roles(self, s: Roles) -> None:
        """All roles of a block."""
        self.forget()
        made = []
        for role in s.roles:
            name = self.fresh("role")
            with self._agent(name, "me", role.warps):
                self.stmt(role.body)
            made.append(f"({role.name!r}, {role.warps}, {name})")
        self.line(f"launch.run(str({self.block_index}), [{', '.join(made)}])")
        self.forget()

    def groups(self, s: For, extent: str) -> None:
        """The groups of a role."""
        name, variable = self.fresh("group"), self.variable(s.name)
        outer = self.warps
        count = int(str(s.extent))
        with self._agent(name, f"me, {variable}", outer // count):
            self.stmt(s.body)
        self.line(f"yield from me.groups({s.name!r}, {extent}, {name})")
        self.forget()

    @contextmanager
    def _agent(self, name: str, params: str, warps: int) -> Iterator[None]:
        outer, self.warps = self.warps, warps
        with self.nested(f"def {name}({params}):"), self.apart():
            yield
            self.line("if False:")
            self.line("    yield")
        self.warps = outer

    def mbarrier(self, s: MbarrierInit | MbarrierArrive | MbarrierWait) -> None:
        """Initialize mbarriers, arrive or wait; otherwise nobody else is there."""
        if not self.has_roles and not self.lockstep:
            return
        self.forget()
        place = self._place(s.barrier)
        match s:
            case MbarrierInit(barrier, count):
                ((_, number),) = barrier.ranges
                known = "me" if self.lockstep else "launch"
                self.line(f"{known}.start_mbarriers({place}, {self.atom(number)}, {count})")
            case MbarrierWait(_, parity) if self.lockstep:
                self.line(f"me.wait({place}, {self.atom(parity)})")
            case MbarrierArrive(_, mask):
                arrivals = "1" if self.in_threads else str(self.warps)
                with self.nested("" if mask is None else f"if {self.atom(mask)}:"):
                    self.line(f"me.arrive({place}, {arrivals})")
            case MbarrierWait(_, parity) if self.warps:
                self.line(f"yield from me.wait({place}, {self.atom(parity)})")
        self.forget()

    def order(self, s: Barrier | CpAsyncCommit | CpAsyncWait) -> None:
        """What orders the threads of a block; those of a role are one agent."""
        match s:
            case Barrier() if self.lockstep:
                self.line("me.barrier()")
            case Barrier() if self.has_roles and not self.warps:
                self.line("launch.barrier()")
            case CpAsyncCommit() if self.lockstep:
                self.line("me.commit()")
            case CpAsyncWait(pending) if self.lockstep:
                self.line(f"me.wait_copies({pending})")

    def flag(self, s: Signal | Await) -> None:
        """Signal a flag, or await it."""
        self.forget()
        place = self._place(s.flag)
        if isinstance(s, Signal):
            self.line(f"me.signal({place.partition(', ')[2]})")
        else:
            self.line(f"yield from me.await_flag({place}, {self.atom(s.count)})")
        self.forget()

    def _place(self, region: Region) -> str:
        """The name, the buffer and the index of its first element."""
        ((start, _),) = region.ranges
        return f"{region.buffer!r}, {self.buffers[region.buffer]}, {self.atom(start)}"

    # Accesses to memory that agents, or threads, share.

    @property
    def notes(self) -> bool:
        """Whether somebody at this point is noted."""
        return self.lockstep or bool(self.warps)

    def accessed(self, how: str, buffer: str, place: str) -> None:
        """Note an access in a role, if others may access the buffer."""
        if self.notes and buffer in self.noted:
            self.line(f"me.{how}({buffer!r}, {self.buffers[buffer]}, {place})")

    def touched(self, s: Stmt) -> None:
        """Threads access fragments: no product in flight may change them."""
        reads, writes = touched_buffers(s)
        names = [b for b in reads | writes if self.declared[b].scope == FRAGMENT]
        if self.notes and self.facts is not None and names and not self._multiplies(s):
            self.line(f"me.touch({sorted(names)!r})")

    def is_silent(self, s: Stmt) -> bool:
        """Whether threads only compute in registers of their own, which is left out."""
        if self.facts is None or any(
            isinstance(x, (Tile, *_SYNCHRONIZE)) for x in statements_in(s)
        ):
            return False
        return not self.noted & set[str]().union(*touched_buffers(s))

    def _multiplies(self, s: Stmt) -> bool:
        tiles = [t for t in statements_in(s) if isinstance(t, Tile)]
        return self.facts is not None and any(self.facts(t).in_flight is not None for t in tiles)

    def noted_tile(self, s: Tile) -> bool:
        """Write what a tile touches; whether that is all there is to it."""
        if self.notes and is_copy(s) and len(s.srcs) == 2:
            self._tma_copy(s)
            return self.facts is not None
        if self.facts is None:
            return False
        facts = self.facts(s)
        if self.lockstep and facts.copied:
            self._started(s, facts.copied)
            return True
        *reads, write = zip((*s.srcs, s.dst), facts.shapes, strict=True)
        if facts.in_flight is None:
            for region, shape in reads:
                self.accessed("read", region.buffer, self._rows(region, shape))
            region, shape = write
            self.accessed("write", region.buffer, self._rows(region, shape))
        elif is_copy(s):
            self.line(f"me.wait_products({facts.in_flight})")
        else:
            given = ", ".join(
                f"({r.buffer!r}, {self.buffers[r.buffer]}, {self._rows(r, shape)})"
                for r, shape in reads
                if r.buffer in self.noted
            )
            self.line(f"me.product([{given}], {s.dst.buffer!r}, {facts.in_flight})")
        return True

    def _started(self, s: Tile, size: int) -> None:
        """A copy of so many bytes that is under way."""
        name = s.dst.buffer
        number = size // self.declared[name].dtype.bytes
        place = self._rows(s.dst, (1, number))
        self.line(f"me.copy_async({name!r}, {self.buffers[name]}, {place})")

    def _tma_copy(self, s: Tile) -> None:
        """A copy that arrives at the mbarrier which is its second source."""
        if self.facts is None:
            place = ", ".join(
                f"slice({self.atom(a)}, {self.atom(a)} + {self.atom(n)})" for a, n in s.dst.ranges
            )
            place = f"({place},)"
        else:
            place = self._rows(s.dst, self.facts(s).shapes[-1])
        target = f"{s.dst.buffer!r}, {self.buffers[s.dst.buffer]}, {place}"
        self.line(f"me.tma_copy({target}, {self._place(s.srcs[1])})")

    def _rows(self, region: Region, shape: tuple[int, int]) -> str:
        """The places of a matrix."""
        ((start, stride),) = region.ranges
        height, width = shape
        return f"agents.rows({self.atom(start)}, {height}, {self.atom(stride)}, {width})"
