"""Recurrent layers: LSTM, GRU and the plain recurrence, in one or two directions.

    lstm(x[T, B, I], w[D, G * H, I], r[D, G * H, H], bias[D, 2 * G * H], lengths[B], h0[D, B, H],
         c0[D, B, H], peepholes[D, 3 * H]) -> y[T, D, B, H], last h[D, B, H], last c[D, B, H]

G is the number of gates. The input of all time steps is multiplied by its weights at once; what is
left of a direction is one operator of `cells`. All inputs after `r` are optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.op import GraphOps, Op, fail, same_dtype
from tilewright.ops.recurrent import cells
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.ops.shape.assumptions import has_elements, same_shape
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs

DIRECTIONS = ("forward", "reverse", "bidirectional")
# The positions of the inputs.
X, W, R, BIAS, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)


@node
class RecurrentAttrs(Attrs):
    """`direction` is one of DIRECTIONS; activations, one after another, are those of each of them.

    `clip` limits the sums of gates, 0 is no limit. A GRU with `reset_after` resets
    the product with the state, not the state. `couple` makes an LSTM forget just as much as it
    takes in. With `batch_first`, the batch is the first dimension of x, y and all states.
    """

    activations: tuple[str, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    direction: str = "forward"
    clip: float = 0.0
    reset_after: bool = False
    couple: bool = False
    batch_first: bool = False

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return 2 if self.direction == "bidirectional" else 1

    def steps(self, number: int) -> StepsAttrs:
        """How the time steps of one direction are computed."""
        each = len(self.activations) // self.directions
        part = slice(number * each, (number + 1) * each)
        return StepsAttrs(
            self.activations[part],
            self.alphas[part],
            self.betas[part],
            number,
            self.direction == "reverse" or number == 1,
            self.clip,
            self.reset_after,
            self.couple,
        )


@dataclass(frozen=True)
class Cell:
    """What the kinds of layers differ in."""

    name: str
    gates: int
    states: int
    activations: int
    doc: str


CELLS = (
    Cell("lstm", 4, 2, 3, "a layer of long short-term memory"),
    Cell("gru", 3, 1, 2, "a layer of gated recurrent units"),
    Cell("rnn", 1, 1, 1, "a plain recurrent layer"),
)


def _type(
    cell: Cell, attrs: RecurrentAttrs, ins: Sequence[TensorType | None]
) -> tuple[TensorType, ...]:
    x, w, r = ins[:3]
    assert x is not None
    assert w is not None
    assert r is not None
    dtype = same_dtype(cell.name, [x, w, r])
    if x.rank != 3 or r.rank != 3 or not dtype.is_float:
        raise fail(cell.name, f"operands are {x}, {w} and {r}", "use floats of rank 3")
    if attrs.direction not in DIRECTIONS:
        raise fail(
            cell.name, f"no direction {attrs.direction!r}", f"one of {', '.join(DIRECTIONS)}"
        )
    if len(attrs.activations) != cell.activations * attrs.directions:
        count = cell.activations * attrs.directions
        raise fail(cell.name, f"it takes {count} activations, not {len(attrs.activations)}")
    batch, time = x.shape[:2] if attrs.batch_first else (x.shape[1], x.shape[0])
    if not has_elements(cell.name, time):
        raise fail(cell.name, f"the input is {x}", "give it at least one time step")
    units, many = r.shape[2], const(attrs.directions)
    front = (batch, time, many) if attrs.batch_first else (time, many, batch)
    state = (batch, many) if attrs.batch_first else (many, batch)
    last = TensorType(dtype, (*state, units))
    _check_shapes(cell, ins, batch, last)
    return (TensorType(dtype, (*front, units)), *(last,) * cell.states)


def _check_shapes(
    cell: Cell, ins: Sequence[TensorType | None], batch: Expr, state: TensorType
) -> None:
    """Every operand has as many units, gates, directions and sequences as the others say."""
    units = state.shape[2]
    many = state.shape[0 if state.shape[1] is batch else 1]
    rows = simplify(units * cell.gates)
    x = ins[X]
    assert x is not None
    wanted = {
        W: (many, rows, x.shape[2]),
        R: (many, rows, units),
        BIAS: (many, simplify(rows * 2)),
        LENGTHS: (batch,),
        HIDDEN: state.shape,
        CELL: state.shape,
        PEEPHOLES: (many, simplify(units * 3)),
    }
    for position, shape in wanted.items():
        found = ins[position] if position < len(ins) else None
        if found is not None and not same_shape(cell.name, found.shape, shape):
            sizes = ", ".join(map(str, shape))
            raise fail(cell.name, f"operand {position} is {found}, its shape must be [{sizes}]")


class _Layer:
    """Builds the operators of one layer."""

    def __init__(
        self, g: GraphOps, cell: Cell, attrs: RecurrentAttrs, inputs: Sequence[str]
    ) -> None:
        self.g = g
        self.cell = cell
        self.attrs = attrs
        self.inputs = (*inputs, *("",) * (PEEPHOLES + 1 - len(inputs)))
        self.units = g.type(inputs[R]).shape[2]
        self.gates = const(cell.gates)
        self.many = const(attrs.directions)

    def reshape(self, value: str, *shape: Expr) -> str:
        return self.g.add("reshape", value, attrs=ReshapeAttrs(tuple(map(simplify, shape))))

    def transpose(self, value: str, *perm: int) -> str:
        return self.g.add("transpose", value, attrs=TransposeAttrs(perm))

    def part(self, value: str, axis: int, start: int, stop: int) -> str:
        """Some of one dimension."""
        shape = self.g.type(value).shape
        starts = [const(start if d == axis else 0) for d in range(len(shape))]
        stops = [const(stop) if d == axis else n for d, n in enumerate(shape)]
        attrs = SliceAttrs(tuple(starts), tuple(stops), (1,) * len(shape))
        return self.g.add("slice", value, attrs=attrs)

    def pick(self, value: str, axis: int, index: int) -> str:
        """One element of a dimension, which disappears."""
        shape = self.g.type(value).shape
        return self.reshape(
            self.part(value, axis, index, index + 1), *shape[:axis], *shape[axis + 1 :]
        )

    def biases(self) -> tuple[str, str]:
        """The bias of every gate, and apart from it that of candidates that are reset later."""
        split = (self.many, const(2), self.gates, self.units)
        both = self.reshape(self.inputs[BIAS], *split)
        input_bias, state_bias = self.pick(both, 1, 0), self.pick(both, 1, 1)
        if not self.attrs.reset_after:
            return self.g.add("add", input_bias, state_bias), ""
        early = self.g.add("add", self.part(input_bias, 1, 0, 2), self.part(state_bias, 1, 0, 2))
        late = self.part(input_bias, 1, 2, 3)
        return self.g.add("concat", early, late, attrs=ConcatAttrs(1)), self.pick(state_bias, 1, 2)

    def projected(self, bias: str) -> str:
        """The input times its weights, of all steps and directions: [T, B, D, G, H]."""
        x, w = self.inputs[X], self.inputs[W]
        if self.attrs.batch_first:
            x = self.transpose(x, 1, 0, 2)
        time, batch, size = self.g.type(x).shape
        columns = self.many * self.gates * self.units
        weights = self.transpose(self.reshape(w, columns, size), 1, 0)
        y = self.g.add("matmul", self.reshape(x, time * batch, size), weights)
        if bias:
            y = self.g.add("add", y, self.reshape(bias, columns))
        return self.reshape(y, time, batch, self.many, self.gates, self.units)

    def weights(self, number: int) -> tuple[str, str]:
        """The state's weights [H, G, H] of a direction; those of a candidate computed later."""
        r = self.pick(self.inputs[R], 0, number)
        split = self.reshape(r, self.gates, self.units, self.units)
        transposed = self.transpose(split, 2, 0, 1)
        if self.cell.name != "gru" or self.attrs.reset_after:
            return transposed, ""
        return self.part(transposed, 1, 0, 2), self.part(transposed, 1, 2, 3)

    def extra(self, number: int, late_bias: str) -> str:
        """What else a cell takes: peepholes, or a bias that is added late."""
        if self.inputs[PEEPHOLES]:
            picked = self.pick(self.inputs[PEEPHOLES], 0, number)
            return self.reshape(picked, const(3), self.units)
        return self.pick(late_bias, 0, number) if late_bias else ""

    def initial(self, position: int, number: int) -> str:
        """An initial state of a direction: [B, H]."""
        given = self.inputs[position]
        return self.pick(given, 1 if self.attrs.batch_first else 0, number) if given else ""

    def direction(self, number: int, x: str, late_bias: str) -> tuple[str, ...]:
        """The results of one direction: y [T, B, H], then the last states [B, H]."""
        operands = (
            x,
            *self.weights(number),
            self.inputs[LENGTHS],
            self.initial(HIDDEN, number),
            self.initial(CELL, number),
            self.extra(number, late_bias),
        )
        name = f"{self.cell.name}_steps"
        return self.g.add_many(name, *operands, attrs=self.attrs.steps(number))

    def stacked(self, parts: Sequence[str], axis: int) -> str:
        """Directions side by side in a dimension of their own."""
        shape = self.g.type(parts[0]).shape
        rows = [self.reshape(p, *shape[:axis], const(1), *shape[axis:]) for p in parts]
        return self.g.add("concat", *rows, attrs=ConcatAttrs(axis)) if len(rows) > 1 else rows[0]

    def results(self) -> tuple[str, ...]:
        """The outputs of the layer."""
        bias, late_bias = self.biases() if self.inputs[BIAS] else ("", "")
        x = self.projected(bias)
        found = [self.direction(d, x, late_bias) for d in range(self.attrs.directions)]
        (y, *states) = zip(*found, strict=True)
        if not self.attrs.batch_first:
            return (self.stacked(y, 1), *(self.stacked(s, 0) for s in states))
        transposed = [self.transpose(v, 1, 0, 2) for v in y]
        return (self.stacked(transposed, 2), *(self.stacked(s, 1) for s in states))


def _decompose(
    cell: Cell, g: GraphOps, attrs: RecurrentAttrs, inputs: Sequence[str]
) -> tuple[str, ...]:
    return _Layer(g, cell, attrs, inputs).results()


def _flops(cell: Cell, _: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * cell.gates * (ins[W].shape[2] + ins[R].shape[2]) * 2


OPS = (
    *(
        Op(
            cell.name,
            partial(_type, cell),
            "opaque",
            RecurrentAttrs,
            decompose=partial(_decompose, cell),
            flops=partial(_flops, cell),
            doc=cell.doc,
        )
        for cell in CELLS
    ),
    *cells.OPS,
)
