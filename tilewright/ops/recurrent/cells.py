"""One time step of each recurrent cell, and the activation functions that cells may use.

    lstm_steps, gru_steps, rnn_steps
      (x[T, B, D, G, H], weights[H, G, H], candidate weights, lengths, h0, c0, extra)
        -> y[T, B, H], last h[B, H], last c[B, H] (lstm only)

`x` is the input already multiplied by its weights, biases added. `extra` holds an LSTM's peephole
weights `[3, H]`, or the bias `[H]` of a GRU's candidate that is reset after the product. A GRU that
is reset before it has the weights of its candidate apart, since they need another product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.arith.expr import Expr, call, const, maximum, minimum, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import parameters
from tilewright.ops.op import Op, fail
from tilewright.ops.recurrent.time_loop import ROW, UNIT, StepLoops

# The inputs, as parameters of the loop function.
WEIGHTS, CANDIDATE, LENGTHS, HIDDEN, CELL, EXTRA = (f"x{i}" for i in range(1, 7))


@node
class StepsAttrs(Attrs):
    """Which direction of the projected input is read, and how a cell computes.

    An activation is given by its name and two parameters, whether it uses them or not; `clip` holds
    the sums of gates within a range around zero, 0 is no limit.
    """

    activations: tuple[str, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    direction: int = 0
    reverse: bool = False
    clip: float = 0.0
    reset_after: bool = False
    couple: bool = False


Formula = Callable[[Expr, Expr, Expr], Expr]


def _softplus(x: Expr, a: Expr, b: Expr) -> Expr:
    return maximum(x, 0) + call("log1p", call("exp", -call("abs", x)))


# Formulas of an element and the two parameters.
ACTIVATIONS: dict[str, Formula] = {
    "affine": lambda x, a, b: x * a + b,
    "elu": lambda x, a, b: select(x > 0, x, call("expm1", x) * a),
    "hard_sigmoid": lambda x, a, b: maximum(0, minimum(1, x * a + b)),
    "leaky_relu": lambda x, a, b: select(x < 0, x * a, x),
    "relu": lambda x, a, b: maximum(x, 0),
    "scaled_tanh": lambda x, a, b: call("tanh", x * b) * a,
    "sigmoid": lambda x, a, b: call("sigmoid", x),
    "softplus": _softplus,
    "softsign": lambda x, a, b: x / (call("abs", x) + 1),
    "tanh": lambda x, a, b: call("tanh", x),
    "thresholded_relu": lambda x, a, b: select(x > a, x, 0),
}


def _gate(attrs: StepsAttrs, index: int, total: Expr) -> Expr:
    """The activation number `index` of a gate's sum, which is held within limits if there are."""
    if attrs.clip > 0:
        low, high = const(-attrs.clip, total.dtype), const(attrs.clip, total.dtype)
        total = maximum(low, minimum(high, total))
    return _activate(attrs, index, total)


def _activate(attrs: StepsAttrs, index: int, x: Expr) -> Expr:
    """The cell's activation function number `index`."""
    alpha, beta = const(attrs.alphas[index], x.dtype), const(attrs.betas[index], x.dtype)
    return ACTIVATIONS[attrs.activations[index]](x, alpha, beta)


def _given(loops: StepLoops, name: str) -> str:
    return name if name in loops.params else ""


def _rnn_step(loops: StepLoops, attrs: StepsAttrs) -> None:
    loops.state("previous", loops.previous("y1", _given(loops, HIDDEN)))
    before = loops.load("previous", ROW, UNIT)
    sums = loops.sums("sums", "previous", WEIGHTS)
    value = _gate(attrs, 0, loops.input(0) + sums(0))
    loops.output(value, before)


def _lstm_step(loops: StepLoops, attrs: StepsAttrs) -> None:
    """Gates are in the order input, output, forget, cell; so are the peepholes of the first 3."""
    loops.state("previous", loops.previous("y1", _given(loops, HIDDEN)))
    sums = loops.sums("sums", "previous", WEIGHTS)

    def gate(index: int, activation: int, seen: Expr | None = None) -> Expr:
        total = loops.input(index) + sums(index)
        if seen is not None and EXTRA in loops.params:
            total = total + seen * loops.load(EXTRA, const(index), UNIT)
        return _gate(attrs, activation, total)

    before = loops.previous("y2", _given(loops, CELL))
    taken = gate(0, 0, before)
    kept = 1 - taken if attrs.couple else gate(2, 0, before)
    loops.state("y2", loops.while_active(kept * before + taken * gate(3, 1), before))
    cell = loops.load("y2", ROW, UNIT)
    value = gate(1, 0, cell) * _activate(attrs, 2, cell)
    loops.output(value, loops.load("previous", ROW, UNIT))


def _gru_step(loops: StepLoops, attrs: StepsAttrs) -> None:
    """Gates are in the order update, reset, candidate."""
    loops.state("previous", loops.previous("y1", _given(loops, HIDDEN)))
    before = loops.load("previous", ROW, UNIT)
    sums = loops.sums("sums", "previous", WEIGHTS)
    reset = _gate(attrs, 0, loops.input(1) + sums(1))
    update = _gate(attrs, 0, loops.input(0) + sums(0))
    if attrs.reset_after:
        biased = sums(2)
        if EXTRA in loops.params:
            biased = biased + loops.load(EXTRA, UNIT)
        product = reset * biased
    else:
        loops.state("update", update)
        loops.state("reset", reset * before, CANDIDATE)
        product = loops.sums("candidate", "reset", CANDIDATE)(0)
        update = loops.load("update", ROW, UNIT)
    value = (1 - update) * _gate(attrs, 1, loops.input(2) + product) + update * before
    loops.output(value, before)


Step = Callable[[StepLoops, StepsAttrs], None]


def _loops(
    name: str,
    step: Step,
    attrs: StepsAttrs,
    ins: Sequence[TensorType | None],
    outs: Sequence[TensorType],
) -> Func:
    params = parameters(ins, outs)
    lengths = LENGTHS if LENGTHS in params else ""
    loops = StepLoops(name, params, attrs.direction, attrs.reverse, lengths)
    step(loops, attrs)
    return loops.func(tuple(f"y{i}" for i in range(len(outs))))


def _type(
    name: str, states: int, activations: int, attrs: StepsAttrs, ins: Sequence[TensorType | None]
) -> tuple[TensorType, ...]:
    x, weights = ins[:2]
    assert x is not None
    assert weights is not None
    if x.rank != 5 or not x.dtype.is_float:
        raise fail(
            name, f"the projected input is {x}", "use floats [time, batch, direction, gate, H]"
        )
    time, batch, _, _, units = x.shape
    if time is const(0):
        raise fail(name, f"the projected input is {x}", "give it at least one time step")
    if weights.rank != 3 or (weights.shape[0], weights.shape[2]) != (units, units):
        raise fail(name, f"the weights are {weights}", f"use [{units}, gates, {units}]")
    if not len(attrs.activations) == len(attrs.alphas) == len(attrs.betas) == activations:
        raise fail(name, f"it takes {activations} activations with two parameters each")
    unknown = [a for a in attrs.activations if a not in ACTIVATIONS]
    if unknown:
        raise fail(name, f"no activation {unknown[0]!r}", f"one of {', '.join(ACTIVATIONS)}")
    state = TensorType(x.dtype, (batch, units))
    return (TensorType(x.dtype, (time, batch, units)), *(state,) * states)


def _flops(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    """Two for each weight, and some tens for the activations of each gate."""
    gates, units = ins[0].shape[3:]
    return outs[0].elements * gates * (units * 2 + 16)


def _row(name: str, states: int, activations: int, step: Step, doc: str) -> Op:
    return Op(
        name,
        partial(_type, name, states, activations),
        "opaque",
        StepsAttrs,
        loops=partial(_loops, name, step),
        flops=_flops,
        doc=doc,
    )


OPS = (
    _row("lstm_steps", 2, 3, _lstm_step, "the time steps of one direction of an LSTM"),
    _row("gru_steps", 1, 2, _gru_step, "the time steps of one direction of a GRU"),
    _row("rnn_steps", 1, 1, _rnn_step, "the time steps of one direction of a plain recurrence"),
)
