from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import assert_same_on_threads, check_native, random_inputs
from tests.ops import recurrent_reference as reference
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, F64, I32, DType
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.ops.recurrent import RecurrentAttrs

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
ACTIVATIONS = {
    "lstm": ("sigmoid", "tanh", "tanh"),
    "gru": ("sigmoid", "tanh"),
    "rnn": ("tanh",),
}


def _attrs(op: str, direction: str = "forward", **rest: object) -> RecurrentAttrs:
    names = ACTIVATIONS[op] * (2 if direction == "bidirectional" else 1)
    zeros = (0.0,) * len(names)
    return RecurrentAttrs(names, zeros, zeros, direction, **rest)  # type: ignore[arg-type]


def _weights(op: str, inputs: int, units: int, directions: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    rows = GATES[op] * units
    shapes = [(directions, rows, inputs), (directions, rows, units), (directions, 2 * rows)]
    return [(rng.standard_normal(s) * 0.4).astype(np.float32) for s in shapes]


def _input(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_lstm_is_what_its_formulas_say() -> None:
    x, weights = _input(6, 3, 5), _weights("lstm", 5, 7)
    y, h, c = run_op("lstm", x, *weights, attrs=_attrs("lstm"))
    ys, last, cell = reference.lstm(x, *(w[0] for w in weights))
    np.testing.assert_allclose(y, ys[:, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h[0], last, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(c[0], cell, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_is_what_its_formulas_say(reset_after: bool) -> None:
    x, weights = _input(6, 2, 4), _weights("gru", 4, 5)
    y, h = run_op("gru", x, *weights, attrs=_attrs("gru", reset_after=reset_after))
    ys, last = reference.gru(x, *(w[0] for w in weights), reset_after)
    np.testing.assert_allclose(y, ys[:, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h[0], last, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_two_directions_are_each_direction_alone(op: str) -> None:
    x, weights = _input(5, 2, 3), _weights(op, 3, 4, directions=2)
    y, h, *_ = run_op(op, x, *weights, attrs=_attrs(op, "bidirectional"))
    for number, direction in enumerate(("forward", "reverse")):
        alone = [w[number : number + 1] for w in weights]
        y1, h1, *_ = run_op(op, x, *alone, attrs=_attrs(op, direction))
        np.testing.assert_array_equal(y[:, number], y1[:, 0])
        np.testing.assert_array_equal(h[number], h1[0])
    ends = np.stack([y[-1, 0], y[0, 1]])
    np.testing.assert_array_equal(h, ends)


@pytest.mark.parametrize("op", GATES)
def test_the_batch_may_come_first(op: str) -> None:
    x, weights = _input(5, 2, 3), _weights(op, 3, 4, directions=2)
    h0 = _input(2, 2, 4)
    ours = run_op(op, x, *weights, None, h0, attrs=_attrs(op, "bidirectional"))
    turned = run_op(
        op,
        x.transpose(1, 0, 2),
        *weights,
        None,
        h0.transpose(1, 0, 2),
        attrs=_attrs(op, "bidirectional", batch_first=True),
    )
    np.testing.assert_allclose(turned[0], ours[0].transpose(2, 0, 1, 3), rtol=1e-6)
    for a, b in zip(turned[1:], ours[1:], strict=True):
        np.testing.assert_allclose(a, b.transpose(1, 0, 2), rtol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_short_sequence_is_computed_as_if_alone(direction: str) -> None:
    x, weights = _input(5, 3, 4), _weights("lstm", 4, 6)
    lengths = np.array([2, 5, 9], np.int32)  # one is longer than the input
    y, h, c = run_op("lstm", x, *weights, lengths, attrs=_attrs("lstm", direction))
    for row, length in enumerate((2, 5, 5)):
        alone = run_op("lstm", x[:length, row : row + 1], *weights, attrs=_attrs("lstm", direction))
        np.testing.assert_allclose(y[:length, :, row], alone[0][:, :, 0], rtol=1e-5, atol=1e-7)
        assert not y[length:, :, row].any()
        np.testing.assert_allclose(h[:, row], alone[1][:, 0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(c[:, row], alone[2][:, 0], rtol=1e-5, atol=1e-7)


def _layer(
    op: str,
    dims: tuple[object, object, int, int],
    dtype: DType = F32,
    direction: str = "forward",
    lengths: bool = False,
    **rest: object,
) -> Graph:
    """A layer of constant weights with initial states: time, batch, inputs, units."""
    time, batch, inputs, units = dims
    many = 2 if direction == "bidirectional" else 1
    g = GraphBuilder("layer")
    x = g.input("x", tensor(dtype, time, batch, inputs))
    weights = [g.constant(w.astype(dtype.numpy)) for w in _weights(op, inputs, units, many)]
    length = g.input("lengths", tensor(I32, batch)) if lengths else ""
    h = g.input("h", tensor(dtype, many, batch, units))
    return g.graph(*g.add_many(op, x, *weights, length, h, attrs=_attrs(op, direction, **rest)))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
def test_native_in_every_float_type(op: str, dtype: DType) -> None:
    graph = _layer(op, (3, 2, 4, 7), dtype)
    check_native(graph, random_inputs(graph), scale=2.0).close()


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("batch, units", [(1, 32), (3, 17), (5, 4), (1, 1)])
def test_native_at_odd_sizes(op: str, batch: int, units: int) -> None:
    graph = _layer(op, (4, batch, 3, units), direction="bidirectional", lengths=True)
    inputs = random_inputs(graph)
    inputs["lengths"] = np.resize(np.array([2, 4, 0], np.int32), batch)
    check_native(graph, inputs, scale=4.0).close()


def test_native_with_symbolic_time_and_batch() -> None:
    graph = _layer("lstm", (Var("T"), Var("B"), 3, 12), direction="reverse")
    inputs = random_inputs(graph, {"T": 5, "B": 3})
    model = check_native(graph, inputs, scale=4.0)
    for time, batch in ((1, 1), (9, 2)):
        other = random_inputs(graph, {"T": time, "B": batch}, seed=time)
        y, *_ = model(**other)
        assert y.shape == (time, 1, batch, 12)
    model.close()


@pytest.mark.parametrize("op", GATES)
def test_units_are_shared_among_threads(op: str) -> None:
    graph = _layer(op, (3, 1, 8, 464), reset_after=op == "gru")
    model = check_native(graph, random_inputs(graph), scale=10.0)
    assert_same_on_threads(model, random_inputs(graph), 2, 3)
    model.close()


def test_operands_are_checked() -> None:
    x, (w, r, bias) = _input(5, 2, 3), _weights("rnn", 3, 4)
    with pytest.raises(TypeCheckError, match=r"operand 3 is .*its shape must be \[1, 8\]"):
        run_op("rnn", x, w, r, bias[:, 1:], attrs=_attrs("rnn"))
    with pytest.raises(TypeCheckError, match="no direction 'sideways'"):
        run_op("rnn", x, w, r, bias, attrs=_attrs("rnn", "sideways"))
    with pytest.raises(TypeCheckError, match="takes 1 activations, not 2"):
        two = RecurrentAttrs(("tanh", "tanh"), (0.0, 0.0), (0.0, 0.0))
        run_op("rnn", x, w, r, bias, attrs=two)
    with pytest.raises(TypeCheckError, match="floats of rank 3"):
        run_op("rnn", x[0], w, r, bias, attrs=_attrs("rnn"))
    with pytest.raises(TypeCheckError, match="at least one time step"):
        run_op("rnn", x[:0], w, r, bias, attrs=_attrs("rnn"))
