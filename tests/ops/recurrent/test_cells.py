from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.recurrent.cells import ACTIVATIONS, StepsAttrs

X = np.linspace(-3, 3, 7, dtype=np.float32)
A, B = 0.3, 0.6

MEANING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "affine": lambda x: A * x + B,
    "elu": lambda x: np.where(x > 0, x, A * np.expm1(x)),
    "hard_sigmoid": lambda x: np.clip(A * x + B, 0, 1),
    "leaky_relu": lambda x: np.where(x < 0, A * x, x),
    "relu": lambda x: np.maximum(x, 0),
    "scaled_tanh": lambda x: A * np.tanh(B * x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanh": np.tanh,
    "thresholded_relu": lambda x: np.where(x > A, x, 0),
}


def _rnn(x: np.ndarray, name: str, clip: float = 0.0) -> np.ndarray:
    """One step of a recurrence whose state has no influence."""
    attrs = StepsAttrs((name,), (A,), (B,), clip=clip)
    weights = np.zeros((x.size, 1, x.size), np.float32)
    y, _ = run_op("rnn_steps", x.reshape(1, 1, 1, 1, -1), weights, attrs=attrs)
    return y.reshape(-1)


@for_each("name", ACTIVATIONS)
def test_every_activation(name: str) -> None:
    np.testing.assert_allclose(_rnn(X, name), MEANING[name](X), rtol=1e-5, atol=1e-6)
    clipped = MEANING[name](np.clip(X, -0.5, 0.5))
    np.testing.assert_allclose(_rnn(X, name, clip=0.5), clipped, rtol=1e-5, atol=1e-6)


def test_what_is_not_a_number_stays_that() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    y = _rnn(x, "sigmoid")
    assert np.isnan(y[0])
    assert y[1:].tolist() == [1, 0]


def test_coupled_gates_forget_what_they_take_in() -> None:
    attrs = StepsAttrs(("sigmoid", "affine", "affine"), (0, 1, 1), (0, 0, 0), couple=True)
    x = np.array([[[[[0.5], [0.0], [9.0], [2.0]]]]], np.float32)
    c0 = np.full((1, 1), 4.0, np.float32)
    none = np.zeros((1, 4, 1), np.float32)
    _, _, c = run_op("lstm_steps", x, none, None, None, None, c0, attrs=attrs)
    taken = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(c, [[(1 - taken) * 4 + taken * 2]], rtol=1e-6)


def test_peepholes_see_the_cell_before_and_after() -> None:
    attrs = StepsAttrs(("affine",) * 3, (1, 1, 1), (0, 0, 0))
    x = np.zeros((1, 1, 1, 4, 1), np.float32)
    x[0, 0, 0, 3] = 1
    c0 = np.full((1, 1), 2.0, np.float32)
    peepholes = np.array([[3], [5], [7]], np.float32)
    none = np.zeros((1, 4, 1), np.float32)
    _, h, c = run_op("lstm_steps", x, none, None, None, None, c0, peepholes, attrs=attrs)
    assert c.item() == 7 * 2 * 2 + 3 * 2
    assert h.item() == 5 * 34 * 34


def test_operands_are_checked() -> None:
    x, attrs = np.zeros((1, 1, 1, 1, 3), np.float32), StepsAttrs(("tanh",), (0,), (0,))
    with pytest.raises(TypeCheckError, match="the weights are"):
        run_op("rnn_steps", x, np.zeros((2, 1, 3), np.float32), attrs=attrs)
    with pytest.raises(TypeCheckError, match="the projected input is"):
        run_op("rnn_steps", x[0], np.zeros((3, 1, 3), np.float32), attrs=attrs)
    bad = StepsAttrs(("cube",), (0,), (0,))
    with pytest.raises(TypeCheckError, match="no activation 'cube'"):
        run_op("rnn_steps", x, np.zeros((3, 1, 3), np.float32), attrs=bad)
    with pytest.raises(TypeCheckError, match="takes 1 activations"):
        run_op("rnn_steps", x, np.zeros((3, 1, 3), np.float32), attrs=StepsAttrs((), (), ()))
