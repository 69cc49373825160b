"""Recurrent layers in NumPy, written from their published formulas, and operands for them."""

from __future__ import annotations

import numpy as np

from tilewright.ops.recurrent.layers import RecurrentAttrs

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
ACTIVATIONS = {
    "lstm": ("sigmoid", "tanh", "tanh"),
    "gru": ("sigmoid", "tanh"),
    "rnn": ("tanh",),
}


def layer_attrs(op: str, direction: str = "forward", **rest: object) -> RecurrentAttrs:
    """A layer with the usual activations."""
    names = ACTIVATIONS[op] * (2 if direction == "bidirectional" else 1)
    zeros = (0.0,) * len(names)
    return RecurrentAttrs(names, zeros, zeros, direction, **rest)  # type: ignore[arg-type]


def layer_weights(op: str, inputs: int, units: int, directions: int = 1) -> list[np.ndarray]:
    """Random weights of the input and the state, and biases."""
    rng = np.random.default_rng(7)
    rows = GATES[op] * units
    shapes = [(directions, rows, inputs), (directions, rows, units), (directions, 2 * rows)]
    return [(rng.standard_normal(s) * 0.4).astype(np.float32) for s in shapes]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(
    x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gates in the order input, output, forget, cell; weights `[4 * H, ...]`, zero states."""
    units = r.shape[1]
    h = c = np.zeros((x.shape[1], units))
    rows = []
    for step in x.astype(np.float64):
        total = step @ w.T + h @ r.T + bias[: 4 * units] + bias[4 * units :]
        i, o, f, g = np.split(total, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.stack(rows), h, c


def gru(
    x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray, reset_after: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Gates in the order update, reset, candidate; weights `[3 * H, ...]`, zero state."""
    units = r.shape[1]
    h = np.zeros((x.shape[1], units))
    given, late = bias[: 3 * units], bias[3 * units :]
    rows = []
    for step in x.astype(np.float64):
        xz, xr, xn = np.split(step @ w.T + given, 3, axis=1)
        hz, hr, hn = np.split(h @ r.T + late, 3, axis=1)
        z, reset = sigmoid(xz + hz), sigmoid(xr + hr)
        if not reset_after:
            hn = (reset * h) @ r[2 * units :].T + late[2 * units :]
        n = np.tanh(xn + (reset * hn if reset_after else hn))
        h = (1 - z) * n + z * h
        rows.append(h)
    return np.stack(rows), h
