from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.recurrent import recurrent_reference as reference
from tests.ops.recurrent.recurrent_reference import GATES, layer_attrs, layer_weights
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.recurrent.layers import RecurrentAttrs


def _input(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_lstm_is_what_its_formulas_say() -> None:
    x, weights = _input(6, 3, 5), layer_weights("lstm", 5, 7)
    y, h, c = run_op("lstm", x, *weights, attrs=layer_attrs("lstm"))
    ys, last, cell = reference.lstm(x, *(w[0] for w in weights))
    np.testing.assert_allclose(y, ys[:, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h[0], last, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(c[0], cell, rtol=1e-4, atol=1e-6)


@for_each("reset_after", [False, True])
def test_gru_is_what_its_formulas_say(reset_after: bool) -> None:
    x, weights = _input(6, 2, 4), layer_weights("gru", 4, 5)
    y, h = run_op("gru", x, *weights, attrs=layer_attrs("gru", reset_after=reset_after))
    ys, last = reference.gru(x, *(w[0] for w in weights), reset_after)
    np.testing.assert_allclose(y, ys[:, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h[0], last, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_two_directions_are_each_direction_alone(op: str) -> None:
    x, weights = _input(5, 2, 3), layer_weights(op, 3, 4, directions=2)
    y, h, *_ = run_op(op, x, *weights, attrs=layer_attrs(op, "bidirectional"))
    for number, direction in enumerate(("forward", "reverse")):
        alone = [w[number : number + 1] for w in weights]
        y1, h1, *_ = run_op(op, x, *alone, attrs=layer_attrs(op, direction))
        np.testing.assert_array_equal(y[:, number], y1[:, 0])
        np.testing.assert_array_equal(h[number], h1[0])
    ends = np.stack([y[-1, 0], y[0, 1]])
    np.testing.assert_array_equal(h, ends)


@pytest.mark.parametrize("op", GATES)
def test_the_batch_may_come_first(op: str) -> None:
    x, weights = _input(5, 2, 3), layer_weights(op, 3, 4, directions=2)
    h0 = _input(2, 2, 4)
    ours = run_op(op, x, *weights, None, h0, attrs=layer_attrs(op, "bidirectional"))
    turned = run_op(
        op,
        x.transpose(1, 0, 2),
        *weights,
        None,
        h0.transpose(1, 0, 2),
        attrs=layer_attrs(op, "bidirectional", batch_first=True),
    )
    np.testing.assert_allclose(turned[0], ours[0].transpose(2, 0, 1, 3), rtol=1e-6)
    for a, b in zip(turned[1:], ours[1:], strict=True):
        np.testing.assert_allclose(a, b.transpose(1, 0, 2), rtol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_short_sequence_is_computed_as_if_alone(direction: str) -> None:
    x, weights = _input(5, 3, 4), layer_weights("lstm", 4, 6)
    lengths = np.array([2, 5, 9], np.int32)  # one is longer than the input
    y, h, c = run_op("lstm", x, *weights, lengths, attrs=layer_attrs("lstm", direction))
    for row, length in enumerate((2, 5, 5)):
        alone = run_op(
            "lstm", x[:length, row : row + 1], *weights, attrs=layer_attrs("lstm", direction)
        )
        np.testing.assert_allclose(y[:length, :, row], alone[0][:, :, 0], rtol=1e-5, atol=1e-7)
        assert not y[length:, :, row].any()
        np.testing.assert_allclose(h[:, row], alone[1][:, 0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(c[:, row], alone[2][:, 0], rtol=1e-5, atol=1e-7)


def test_operands_are_checked() -> None:
    x, (w, r, bias) = _input(5, 2, 3), layer_weights("rnn", 3, 4)
    with pytest.raises(TypeCheckError, match=r"operand 3 is .*its shape must be \[1, 8\]"):
        run_op("rnn", x, w, r, bias[:, 1:], attrs=layer_attrs("rnn"))
    with pytest.raises(TypeCheckError, match="no direction 'sideways'"):
        run_op("rnn", x, w, r, bias, attrs=layer_attrs("rnn", "sideways"))
    two = RecurrentAttrs(("tanh", "tanh"), (0.0, 0.0), (0.0, 0.0))
    with pytest.raises(TypeCheckError, match="takes 1 activations, not 2"):
        run_op("rnn", x, w, r, bias, attrs=two)
    with pytest.raises(TypeCheckError, match="floats of rank 3"):
        run_op("rnn", x[0], w, r, bias, attrs=layer_attrs("rnn"))
    with pytest.raises(TypeCheckError, match="at least one time step"):
        run_op("rnn", x[:0], w, r, bias, attrs=layer_attrs("rnn"))
