"""DynamicQuantizeLSTM: weights of 8 bits, inputs and states quantized by their own ranges.

    x[T, B, I]; weights w[D, I, 4 * H] and r[D, H, 4 * H] of 8 bits; scales [D] or [D, 4 * H]

As in ONNX Runtime the input of all steps has one range, and the state of all sequences has one in
each step. The input is multiplied by its weights at once; the steps are a native loop, in which the
product with the state is one of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, I64
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.microsoft.quantized import quantized_by_range
from tilewright.frontends.onnx.convert.qlinear import integer_product
from tilewright.frontends.onnx.convert.recurrent import LSTM, check_layer, layer_attrs
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.frontends.onnx.regions import region_builder
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Graph
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.elementwise.activation import AlphaAttrs, HardSigmoidAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.ops.recurrent.layers import BIAS, CELL, HIDDEN, LENGTHS, PEEPHOLES, R, W, X
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import DimsAttrs, FullAttrs, RangeAttrs
from tilewright.ops.tensor.indexing import ReverseSequenceAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.ops.traced_value import where

W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(8, 12)
# Gates in the order of the weights.
INPUT, OUTPUT, FORGET, CANDIDATE = range(4)

_BY_ALPHA = ("elu", "leaky_relu", "thresholded_relu")


def _activated(x: NodeValue, attrs: StepsAttrs, index: int) -> NodeValue:
    """Activation number `index` of a cell."""
    name, alpha, beta = attrs.activations[index], attrs.alphas[index], attrs.betas[index]
    if name == "affine":
        return x * alpha + beta
    if name == "scaled_tanh":
        return (x * beta).apply("tanh") * alpha
    given: Attrs = NO_ATTRS
    if name in _BY_ALPHA:
        given = AlphaAttrs(alpha)
    elif name == "hard_sigmoid":
        given = HardSigmoidAttrs(alpha, beta)
    return x.apply(name, attrs=given)


@dataclass(frozen=True)
class _Direction:
    """One direction of a layer; operands are those of the node, cut to this direction."""

    n: OnnxNode
    number: int
    attrs: StepsAttrs

    def pick(self, c: OnnxContext, index: int) -> str:
        """What an input has for this direction; `""` if it is absent."""
        value = self.n.input(index)
        if not value:
            return ""
        first = const(self.number)
        cut = add_slice(c, value, {0: (first, simplify(first + 1), 1)}, "direction")
        return add_reshape(c, self.n, cut, c.type(value).shape[1:])

    def product(
        self, c: OnnxContext, x: NodeValue, ranged: NodeValue, weights: tuple[str, str, str]
    ) -> NodeValue:
        """A product with weights, their scale and zero point."""
        w, w_scale, w_zero = weights
        bytes_, scale, zero = quantized_by_range(x, ranged)
        sums = integer_product(c, self.n, bytes_.name, w, (zero.name, w_zero))
        return traced(c, self.n, sums).cast(F32) * (scale * traced(c, self.n, w_scale))

    def projected(self, c: OnnxContext) -> NodeValue:
        """The input of all steps times its weights, biases added: [T, B, 4 * H]."""
        n = self.n
        x = traced(c, n, n.required(X))
        weights = (self.pick(c, W), self.pick(c, W_SCALE), self.pick(c, W_ZERO))
        y = self.product(c, x, _within_lengths(c, n, x), weights)
        if n.has_input(BIAS):
            bias = self.pick(c, BIAS)
            rows = simplify(c.type(bias).shape[0] // 2)
            both = traced(c, n, add_reshape(c, n, bias, (const(2), rows)))
            y = y + both.apply("reduce_sum", attrs=ReduceAttrs((0,), keepdims=False))
        if self.attrs.reverse and n.has_input(LENGTHS):
            y = self.reversed(c, y)
        return y

    def reversed(self, c: OnnxContext, x: NodeValue) -> NodeValue:
        """Each sequence from its end."""
        attrs = ReverseSequenceAttrs(time_axis=0, batch_axis=1)
        return x.apply("reverse_sequence", traced(c, self.n, self.n.input(LENGTHS)), attrs=attrs)

    def initial(self, c: OnnxContext, index: int, batch: Expr, units: Expr) -> str:
        """A state before the first step."""
        given = self.pick(c, index)
        return given or c.add(self.n, "full", attrs=FullAttrs((batch, units), 0.0, F32))

    def results(self, c: OnnxContext, units: Expr) -> tuple[str, str, str]:
        """Rows `[T, B, H]`, the last state and the last cell `[B, H]`."""
        n = self.n
        time, batch, _ = c.shape(n, n.required(X), 3)
        counter = c.fresh_size()
        # Without lengths, the last step of the input comes first, and its row goes to the end.
        backward = self.attrs.reverse and not n.has_input(LENGTHS)
        at = simplify(time - 1 - Var(counter)) if backward else Var(counter)
        states = [self.initial(c, i, batch, units) for i in (HIDDEN, CELL)]
        shared = [
            self.projected(c).name,
            *(self.pick(c, i) for i in (R, R_SCALE, R_ZERO, PEEPHOLES)),
            n.input(LENGTHS),
        ]
        region = self.region(c, states, shared, counter, at)
        operands = [v for v in shared if v and c.constant_of(v) is None]
        attrs = LoopAttrs(counter, time, 2, backward=(0,) if backward else ())
        last, cell, rows = c.g.add_control(
            "loop", ["", *states, *operands], [region], attrs, ("y_h", "y_c", "y"), n.loc
        )
        if self.attrs.reverse and not backward:
            rows = self.reversed(c, traced(c, n, rows)).name
        return rows, last, cell

    def region(
        self, c: OnnxContext, states: list[str], shared: list[str], counter: str, at: Expr
    ) -> Graph:
        """The graph of a step: the next state and cell, and a row."""
        n = self.n
        g = region_builder(c, "lstm_step")
        h, cell = (g.input(name, c.type(s)) for name, s in zip(("h", "c"), states, strict=True))
        x, r, r_scale, r_zero, peepholes, lengths = (g.capture(c.g, v) if v else "" for v in shared)
        inner = c.inner(g, {})
        before, cell_before = traced(inner, n, h), traced(inner, n, cell)
        sums = traced(inner, n, _row(g, x, at))
        sums = sums + self.product(inner, before, before, (r, r_scale, r_zero))
        after, cell_after = self.step(inner, sums, cell_before, peepholes)
        row = after
        if lengths:
            going = _going_on(inner, n, lengths, counter)
            row = where(going, after, after.number(0))
            after = where(going, after, before)
            cell_after = where(going, cell_after, cell_before)
        return g.graph(after.name, cell_after.name, row.name)

    def step(
        self, c: OnnxContext, sums: NodeValue, cell: NodeValue, peepholes: str
    ) -> tuple[NodeValue, NodeValue]:
        """The state and the cell after a step."""
        attrs, n = self.attrs, self.n
        units = cell.shape[1]

        def part(value: str, axis: int, index: int) -> NodeValue:
            start = simplify(units * index)
            ranges = {axis: (start, simplify(start + units), 1)}
            return traced(c, n, add_slice(c, value, ranges, "gate"))

        def gate(index: int, activation: int, seen: NodeValue | None = None) -> NodeValue:
            total = part(sums.name, 1, index)
            if seen is not None and peepholes:
                total = total + seen * part(peepholes, 0, index)
            if attrs.clip > 0:
                total = total.apply("clip", -attrs.clip, attrs.clip)
            return _activated(total, attrs, activation)

        taken = gate(INPUT, 0, cell)
        kept = 1 - taken if attrs.couple else gate(FORGET, 0, cell)
        after = kept * cell + taken * gate(CANDIDATE, 1)
        return gate(OUTPUT, 0, after) * _activated(after, attrs, 2), after


def _row(g: GraphBuilder, value: str, at: Expr) -> str:
    """One step of the projected input."""
    rest = g.type(value).shape[1:]
    starts, stops = (at, *(const(0) for _ in rest)), (simplify(at + 1), *rest)
    cut = g.add("slice", value, attrs=SliceAttrs(starts, stops, (1,) * len(starts), inside=True))
    return g.reshape(cut, rest)


def _going_on(c: OnnxContext, n: OnnxNode, lengths: str, counter: str) -> NodeValue:
    """Which sequences have not ended at a step: `[B, 1]`."""
    column = add_reshape(c, n, lengths, (*c.type(lengths).shape, const(1)))
    step = c.add(n, "dims", attrs=DimsAttrs((Var(counter),), ()))
    return traced(c, n, step).apply("less", traced(c, n, column).cast(I64))


def _within_lengths(c: OnnxContext, n: OnnxNode, x: NodeValue) -> NodeValue:
    """The input with zeros behind the end of the longest sequence, which has no range."""
    if not n.has_input(LENGTHS):
        return x
    lengths = traced(c, n, n.input(LENGTHS)).cast(I64)
    longest = lengths.apply("reduce_max", attrs=ReduceAttrs((0,), keepdims=False))
    attrs = RangeAttrs(const(0), const(1), x.shape[0])
    places = add_reshape(c, n, c.add(n, "range", attrs=attrs), (x.shape[0], const(1), const(1)))
    return where(traced(c, n, places).apply("less", longest), x, x.number(0))


def dynamic_quantize_lstm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """An LSTM with weights of 8 bits; inputs and states are quantized on the way."""
    attrs = layer_attrs(n, LSTM)
    for index in (X, W, R, W_SCALE, R_SCALE):
        n.required(index)
    _check_shapes(c, n, attrs.directions)
    units = c.shape(n, n.input(R), 3)[1]
    check_layer(c, n, units)
    found = [_Direction(n, d, attrs.steps(d)).results(c, units) for d in range(attrs.directions)]
    rows, last, cells = zip(*found, strict=True)
    return _stacked(c, n, rows, 1), _stacked(c, n, last, 0), _stacked(c, n, cells, 0)


def _check_shapes(c: OnnxContext, n: OnnxNode, directions: int) -> None:
    """Weights are `[directions, size, 4 * units]`, and what belongs to them fits."""
    if c.type(n.input(X)).dtype != F32:
        raise n.unsupported(f"an input {c.type(n.input(X))}", "f32")
    _, batch, size = c.shape(n, n.input(X), 3)
    units = c.shape(n, n.input(R), 3)[1]
    many, gates = const(directions), simplify(units * 4)
    wanted: dict[int, tuple[Expr, ...]] = {
        W: (many, size, gates),
        R: (many, units, gates),
        BIAS: (many, simplify(gates * 2)),
        LENGTHS: (batch,),
        HIDDEN: (many, batch, units),
        CELL: (many, batch, units),
        PEEPHOLES: (many, simplify(units * 3)),
    }
    for index in (W_SCALE, W_ZERO, R_SCALE, R_ZERO):
        one_each = n.has_input(index) and c.type(n.input(index)).rank == 2
        wanted[index] = (many, gates) if one_each else (many,)
    for index, shape in wanted.items():
        if n.has_input(index):
            _check_shape(c, n, index, shape)


def _check_shape(c: OnnxContext, n: OnnxNode, index: int, shape: tuple[Expr, ...]) -> None:
    """An input has a shape; sizes that are not known yet are compared when the model runs."""
    found = c.type(n.input(index))
    what = f"input {index} is {found}, its shape must be [{', '.join(map(str, shape))}]"
    message = f"{n.op_type}: {what}"
    if found.rank != len(shape) or not all(
        c.g.add_check(size.eq(wanted), message, n.loc)
        for size, wanted in zip(found.shape, shape, strict=True)
    ):
        raise n.invalid(what)


def _stacked(c: OnnxContext, n: OnnxNode, parts: tuple[str, ...], axis: int) -> str:
    """Directions side by side in a dimension of their own."""
    shape = c.type(parts[0]).shape
    rows = [add_reshape(c, n, p, (*shape[:axis], const(1), *shape[axis:])) for p in parts]
    return c.add(n, "concat", *rows, attrs=ConcatAttrs(axis)) if len(rows) > 1 else rows[0]


CONVERTERS: dict[str, Converter] = {
    "com.microsoft::DynamicQuantizeLSTM": dynamic_quantize_lstm,
}
