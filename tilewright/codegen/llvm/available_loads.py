"""What was read from memory and cannot have changed since: it is not read again.

Within one basic block, a store to a buffer of the kernel's own stack leaves everything else as it
is, and what it writes at a constant place is known without reading it. A store to any other buffer
may change whatever is not on the stack: an output may share its memory with an input. LLVM would
find all this out as well, from many times the text.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from tilewright.arith.expr import Expr, Load, as_int
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import operands
from tilewright.codegen.llvm.types import is_widened
from tilewright.ir.loop.nodes import Store


class Reads(IntEnum):
    """What memory an expression reads, at most."""

    NOTHING = 0
    SHARED = 1
    STACK = 2


class AvailableLoads:
    """Registers that hold what was loaded; `own` are the buffers on the stack."""

    def __init__(self, own: Collection[str]) -> None:
        self.own = own
        self._reads: dict[Expr, Reads] = {}
        self._shared: dict[Expr, str] = {}
        # Of the own buffers: by name, the loads at constant places and the elements they cover.
        self._held: dict[str, dict[Load, tuple[str, range]]] = {}
        # Everything else that depends on own buffers, for one statement.
        self._statement: dict[Expr, str] = {}

    def reads(self, e: Expr) -> Reads:
        """What memory `e` reads."""
        found = self._reads.get(e)
        if found is None:
            found = max(map(self.reads, operands(e)), default=Reads.NOTHING)
            if isinstance(e, Load):
                found = max(found, Reads.STACK if e.buffer in self.own else Reads.SHARED)
            self._reads[e] = found
        return found

    def find(self, e: Expr) -> str | None:
        """The register that holds `e`, which reads memory, if there is one."""
        if self.reads(e) == Reads.SHARED:
            return self._shared.get(e)
        if isinstance(e, Load) and e.buffer in self._held and e in self._held[e.buffer]:
            return self._held[e.buffer][e][0]
        return self._statement.get(e)

    def keep(self, e: Expr, register: str) -> None:
        """Remember that a register holds `e`."""
        if self.reads(e) == Reads.SHARED:
            self._shared[e] = register
            return
        span = _span(e) if isinstance(e, Load) and e.mask is None else None
        if span is not None:
            assert isinstance(e, Load)
            self._held.setdefault(e.buffer, {})[e] = (register, span)
        else:
            self._statement[e] = register

    def begin_statement(self) -> None:
        """Forget what is only known within a statement."""
        self._statement = {}

    def forget(self) -> None:
        """Forget everything: the next block may be entered from several predecessors."""
        self._shared, self._held, self._statement = {}, {}, {}

    def stored(self, store: Store, register: str) -> None:
        """A register was written: forget what that may have changed, remember what it is."""
        if store.buffer not in self.own:
            self._shared = {}
            return
        target = Load(store.buffer, store.indices, store.value.dtype)
        span = _span(target)
        held = self._held.get(store.buffer, {}) if span is not None else {}
        left = {load: known for load, known in held.items() if not _meet(known[1], span)}
        if span is not None and store.mask is None and not is_widened(target.dtype):
            left[target] = (register, span)
        self._held[store.buffer] = left


def _span(load: Load) -> range | None:
    """The elements that a load at a constant place covers, those between them included."""
    index = load.indices[0]
    start = as_int(index.base if isinstance(index, Ramp) else index)
    if start is None:
        return None
    last = start + index.stride * (index.count - 1) if isinstance(index, Ramp) else start
    return range(min(start, last), max(start, last) + 1)


def _meet(a: range, b: range | None) -> bool:
    return b is None or (a.start < b.stop and b.start < a.stop)
