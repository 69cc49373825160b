"""Cooperative loops: state is double-buffered, and every nest counts its arrival.

    for t in serial(T) {grid_sync=1} {        for i in grid(1) { P[0, i] = A[i] }
      for i in grid(1) {                      arrived[0] = 0
        P[i] = t == 0 ? A[i] : Y[i]           for t in serial(T) {grid_sync=1} {
      }                                         for b in grid(128) {
      for b in grid(128) {               →        ... P[t % 2, k] ...
        ... P[k] ...                              Y[j] = ...
        Y[j] = ...                                P[(t + 1) % 2, j] = Y[j]
      }                                           arrived[0] = arrived[0] + 1
    }                                           }
                                              }

A copy of the state of the step before, element by element, moves to where that state is computed:
with two buffers, the writes of a step do not meet its reads. So a step needs one grid barrier
instead of two. `codegen/gpu/grid_sync.py` emits the barrier from the count of arrivals.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load, Select, Var, const
from tilewright.arith.walk import free_vars, loads, rewrite, substitute
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import GRID, is_grid_sync
from tilewright.ir.loop.walk import (
    map_exprs,
    rewrite_stmts,
    seq,
    statements_in,
    substitute_stmt,
    touched_buffers,
)

# The counter of the blocks that have ended a nest.
COUNTER = "arrived"
# Stands for the element of the state that is carried to the next step.
_CARRIED = "carried"


def lower_grid_sync(func: Func) -> Func:
    """`func`, its blocks lowered, with double-buffered state in its cooperative loop, if any."""
    loop = next((s for s in statements_in(func.body) if is_grid_sync(s)), None)
    if not isinstance(loop, For):
        return func
    steps = _Steps(loop)

    def rewritten(s: Stmt) -> Stmt | None:
        if s is loop:
            return steps.result()
        if isinstance(s, Alloc) and s.buffer.name in steps.carried:
            return Alloc(replace(s.buffer, shape=(const(2), *s.buffer.shape)), s.body)
        return None

    return replace(func, body=Alloc(steps.counter, rewrite_stmts(func.body, rewritten)))


class _Steps:
    """The loop: nests that copy the state, and all others."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.step = Var(loop.name)
        self.first = self.step.eq(const(0))
        self.counter = Buffer(f"{loop.name}.{COUNTER}", I64, (const(1),))
        # For each copy of the state, its element as an expression of that of the source.
        self.carried: dict[str, Expr] = {}
        self.source = ""
        parts = loop.body.stmts if isinstance(loop.body, Seq) else (loop.body,)
        count = 0
        while count < len(parts) - 1 and self._copies_state(parts[count], parts[count + 1 :]):
            count += 1
        self.copies, self.rest = parts[:count], parts[count:]
        read = set[str]().union(*(touched_buffers(s)[0] for s in self.rest))
        self.carried = {name: value for name, value in self.carried.items() if name in read}

    def result(self) -> Stmt:
        """The initial state, and the loop."""
        start = Store(self.counter.name, (const(0),), const(0, I64))
        initial = (self._initial(nest) for nest in self.copies)
        body = seq(*map(self._nest, self.rest))
        return seq(start, *initial, replace(self.loop, body=body))

    def _copies_state(self, nest: Stmt, others: tuple[Stmt, ...]) -> bool:
        """Whether a nest only copies, element by element, what other nests write."""
        written = set[str]().union(*(touched_buffers(s)[1] for s in others))
        found: dict[str, Expr] = {}
        sources = {self.source} - {""}
        for store in statements_in(nest):
            if not isinstance(store, Store):
                continue
            value = self._of_one(store, written, self.carried | found)
            sources |= {x.buffer for x in loads(self._later(store.value)) if x.buffer in written}
            if value is None:
                return False
            found[store.buffer] = value
        if len(sources) != 1:
            return False
        self.carried |= found
        (self.source,) = sources
        return True

    def _of_one(self, store: Store, written: set[str], known: dict[str, Expr]) -> Expr | None:
        """What is stored after the first step, as an expression of one element of the source."""

        def carried(e: Expr) -> Expr | None:
            if not isinstance(e, Load) or e.indices != store.indices or e.mask is not None:
                return None
            return Var(_CARRIED, e.dtype) if e.buffer in written else known.get(e.buffer)

        value = rewrite(self._later(store.value), carried)
        plain = not any(loads(value)) and free_vars(value) <= {_CARRIED}
        return value if plain and store.mask is None else None

    def _later(self, e: Expr) -> Expr:
        """An expression in a step that is not the first."""
        return rewrite(e, lambda x: x.b if isinstance(x, Select) and x.cond is self.first else None)

    def _at_first(self, e: Expr) -> Expr:
        return rewrite(e, lambda x: x.a if isinstance(x, Select) and x.cond is self.first else None)

    def _initial(self, nest: Stmt) -> Stmt:
        """The copies of the initial state, before the loop."""
        nest = self._in_buffer(map_exprs(nest, self._at_first), const(0))

        def placed(s: Stmt) -> Stmt | None:
            if not isinstance(s, Store) or s.buffer not in self.carried:
                return None
            return replace(s, indices=(const(0), *s.indices))

        return substitute_stmt(rewrite_stmts(nest, placed), {self.loop.name: const(0)})

    def _nest(self, nest: Stmt) -> Stmt:
        """Another nest: it reads one buffer, writes the other, and counts its arrival."""

        def carrying(s: Stmt) -> Stmt | None:
            if not isinstance(s, Store) or s.buffer != self.source:
                return None
            indices = ((self.step + 1) % 2, *s.indices)
            given = {_CARRIED: s.value}
            values = {to: substitute(v, given) for to, v in self.carried.items()}
            return seq(s, *(Store(to, indices, v, s.mask) for to, v in values.items()))

        assert isinstance(nest, For)
        assert nest.kind == GRID
        body = rewrite_stmts(self._in_buffer(nest.body, self.step % 2), carrying)
        count = Load(self.counter.name, (const(0),), I64)
        return replace(nest, body=seq(body, Store(count.buffer, count.indices, count + 1)))

    def _in_buffer(self, stmt: Stmt, which: Expr) -> Stmt:
        """A statement that reads the state from one of the two buffers."""

        def load(e: Expr) -> Expr | None:
            if isinstance(e, Load) and e.buffer in self.carried:
                return Load(e.buffer, (which, *e.indices), e.dtype, e.mask)
            return None

        return map_exprs(stmt, lambda e: rewrite(e, load))
