"""The loops of a recurrent layer: in every time step a product with the state, then formulas on it.

    for t in serial(T) {
      previous[b, j] = t == 0 ? initial state : y1[b, j]
      sums[t, b, gate, j] = sum(k) previous[b, k] * weights[k, gate, j]
      value[t, b, j] = formula(sums, projected input, previous)
      y1[b, j] = value[t, b, j]                                the state
      y0[t, b, j] = value[t, b, j]
    }

Sums and values have the step as an index, but only those of one step exist at a time. Every formula
is a loop nest of its own, which the schedule moves to where its sums are in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.arith.expr import Expr, Load, Var, cast, const, maximum, minimum, select
from tilewright.core.dtypes import I64, DType
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Iter, Seq, Stmt, Store
from tilewright.ops.accumulation import accumulator

STEP, ROW, UNIT = (Var(f"at.{name}") for name in "sbj")  # no size has a name with a dot
TIME = "at.t"


@dataclass
class StepLoops:
    """Collects the nests of one time step.

    Parameter `x0` is the projected input `[time, batch, direction, gate, unit]`, of which the given
    direction is read. `lengths` is the parameter with the length of each sequence, "" if all are
    as long as the input; with `reverse` a sequence is read from its end.
    """

    name: str
    params: dict[str, Buffer]
    direction: int
    reverse: bool
    lengths: str
    nests: list[Stmt] = field(default_factory=list)
    own: dict[str, Buffer] = field(default_factory=dict)

    @property
    def dtype(self) -> DType:
        """The element type in which a step is computed."""
        return accumulator(self.params["x0"].dtype)

    def input(self, gate: int) -> Expr:
        """What the input adds to a gate."""
        return self.load("x0", self._position(), ROW, const(self.direction), const(gate), UNIT)

    def load(self, buffer: str, *indices: Expr) -> Expr:
        """An element, in the type of the computation."""
        found = self._buffers()[buffer]
        return cast(self.dtype, Load(buffer, indices, found.dtype))

    def sums(self, name: str, state: str, weights: str) -> Callable[[int], Expr]:
        """Products of a state with the weights of several gates; gives the sum of a gate.

        For weights of fewer bits than the computation has, the state is rounded to theirs.
        """
        if self.params[weights].dtype.bits < self.own[state].dtype.bits:
            state = self._rounded(state, self.params[weights].dtype)
        time, batch = self.params["x0"].shape[:2]
        units, gates, columns = self.params[weights].shape
        self.own[name] = Buffer(name, self.dtype, (time, batch, gates, columns))
        gate, k = Var("at.g"), Var("at.k")
        element = (STEP, ROW, gate, UNIT)
        term = self.load(state, ROW, k) * self.load(weights, k, gate, UNIT)
        step = Store(name, element, Load(name, element, self.dtype) + term)
        start = Store(name, element, const(0, self.dtype))
        axes = (
            (ROW.name, "S", batch),
            (gate.name, "S", gates),
            (UNIT.name, "S", columns),
            (k.name, "R", units),
        )
        self._nest(name, axes, step, start)
        return lambda g: self.load(name, STEP, ROW, const(g), UNIT)

    def _rounded(self, state: str, dtype: DType) -> str:
        """A copy of a state, rounded."""
        name = f"{state}.{dtype}"
        self.own[name] = Buffer(name, dtype, self.own[state].shape)
        self._store(name, (ROW, UNIT), self.load(state, ROW, UNIT))
        return name

    def state(self, name: str, value: Expr, weights: str = "") -> None:
        """A value of each unit, kept until the next step; `name` is an output or a new buffer.

        It is rounded to the type of the `weights` that alone it is multiplied by.
        """
        if name not in self.params:
            narrow = weights and self.params[weights].dtype.bits < self.dtype.bits
            dtype = self.params[weights].dtype if narrow else self.dtype
            self.own[name] = Buffer(name, dtype, self.params["x0"].shape[1:2] + self._units())
        self._store(name, (ROW, UNIT), value)

    def previous(self, state: str, initial: str) -> Expr:
        """A state after the step before; at first `initial`, or zero if that is ""."""
        start = self.load(initial, ROW, UNIT) if initial else const(0, self.dtype)
        return select(STEP.eq(0), start, self.load(state, ROW, UNIT))

    def while_active(self, value: Expr, otherwise: Expr) -> Expr:
        """`value` up to the end of a sequence, `otherwise` beyond it."""
        return select(STEP < self._length(), value, otherwise) if self.lengths else value

    def output(self, value: Expr, before: Expr) -> None:
        """Write what a step gives to `y0` and the state `y1`.

        Beyond the end of a sequence the state stays as it was `before`, and the output is zero.
        """
        self.own["value"] = Buffer("value", self.dtype, self.params["y0"].shape)
        self._store("value", (STEP, ROW, UNIT), value)
        found = self.load("value", STEP, ROW, UNIT)
        self.state("y1", self.while_active(found, before))
        zero = const(0, self.dtype)
        self._store("y0", (self._position(), ROW, UNIT), self.while_active(found, zero))

    def func(self, outputs: Sequence[str]) -> Func:
        """The function that runs the collected nests in every step."""
        body: Stmt = For(TIME, self.params["x0"].shape[0], "serial", Seq(tuple(self.nests)))
        for buffer in reversed(self.own.values()):
            body = Alloc(buffer, body)
        return Func(self.name, tuple(self.params.values()), tuple(outputs), body)

    def _buffers(self) -> dict[str, Buffer]:
        return {**self.params, **self.own}

    def _units(self) -> tuple[Expr, ...]:
        return self.params["x0"].shape[-1:]

    def _length(self) -> Expr:
        """The length of a sequence, whatever is given as that within the input."""
        given = cast(I64, Load(self.lengths, (ROW,), self.params[self.lengths].dtype))
        return maximum(const(0), minimum(given, self.params["x0"].shape[0]))

    def _position(self) -> Expr:
        """Where in its sequence a step reads and writes."""
        if not self.reverse:
            return STEP
        if not self.lengths:
            return self.params["x0"].shape[0] - 1 - STEP
        return select(STEP < self._length(), self._length() - 1 - STEP, STEP)

    def _store(self, buffer: str, indices: tuple[Expr, ...], value: Expr) -> None:
        batch, units = self.params["x0"].shape[1], self._units()[0]
        stored = Store(buffer, indices, cast(self._buffers()[buffer].dtype, value))
        self._nest(buffer, ((ROW.name, "S", batch), (UNIT.name, "S", units)), stored)

    def _nest(
        self,
        name: str,
        axes: Sequence[tuple[str, str, Expr]],
        body: Stmt,
        init: Stmt | None = None,
    ) -> None:
        time = self.params["x0"].shape[0]
        iters = tuple(Iter(a, kind, n, Var(f"{name}.{a}")) for a, kind, n in axes)
        step = Iter(STEP.name, "S", time, Var(TIME))
        nest: Stmt = make_block(name, (step, *iters), body, init, buffers=self._buffers())
        for a, _, n in reversed(axes):
            nest = For(f"{name}.{a}", n, "serial", nest)
        self.nests.append(nest)
