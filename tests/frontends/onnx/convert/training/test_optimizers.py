"""Steps of optimisers, against the formulas written out in f64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import run_node
from tilewright.core.errors import FrontendError

RNG = np.random.default_rng(16)
DOMAIN = "ai.onnx.preview.training"


def _tensors(groups: int) -> list[np.ndarray]:
    """Two tensors of different shapes, then as many of each for every group."""
    return [
        RNG.uniform(0.1, 1, shape).astype("f4") for _ in range(groups) for shape in ((2, 3), (4,))
    ]


@for_each("done", [0, 3])
def test_adam(done: int) -> None:
    tensors = _tensors(4)
    inputs = [np.array(0.1, "f4"), np.array(done), *tensors]
    options = {"norm_coefficient": 0.01, "norm_coefficient_post": 0.02, "epsilon": 1e-3}
    found = run_node("Adam", inputs, domain=DOMAIN, opset=1, outputs=6, **options)
    for i in range(2):
        x, g, v, h = (t.astype("f8") for t in tensors[i::2])
        g = 0.01 * x + g
        v, h = 0.9 * v + 0.1 * g, 0.999 * h + 0.001 * g * g
        rate = 0.1 * np.sqrt(1 - 0.999**done) / (1 - 0.9**done) if done else 0.1
        x = (x - rate * v / (np.sqrt(h) + 1e-3)) * 0.98
        for ours, theirs in zip(found[i::2], (x, v, h), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_adagrad() -> None:
    x, g, h = _tensors(3)[::2]
    inputs = [np.array(0.5, "f4"), np.array(4), x, g, h]
    options = {"norm_coefficient": 0.1, "decay_factor": 0.25, "epsilon": 1e-2}
    found = run_node("Adagrad", inputs, domain=DOMAIN, opset=1, outputs=2, **options)
    step = 0.1 * x + g
    total = h + step * step
    np.testing.assert_allclose(found[1], total, rtol=1e-5)
    np.testing.assert_allclose(found[0], x - 0.25 * step / (np.sqrt(total) + 1e-2), rtol=1e-5)


@for_each("mode", ["standard", "nesterov"])
@for_each("done", [0, 1])
def test_momentum(mode: str, done: int) -> None:
    x, g, v = _tensors(3)[::2]
    inputs = [np.array(0.5, "f4"), np.array(done), x, g, v]
    options = {"alpha": 0.75, "beta": 0.25, "mode": mode, "norm_coefficient": 0.1}
    found = run_node("Momentum", inputs, domain=DOMAIN, opset=1, outputs=2, **options)
    step = 0.1 * x + g
    moved = 0.75 * v + (0.25 if done else 1) * step
    np.testing.assert_allclose(found[1], moved, rtol=1e-5)
    change = step + 0.75 * moved if mode == "nesterov" else moved
    np.testing.assert_allclose(found[0], x - 0.5 * change, rtol=1e-5)


def test_wrong_nodes() -> None:
    inputs = [np.array(0.5, "f4"), np.array(0), *_tensors(3)[::2]]
    options = {"domain": DOMAIN, "opset": 1, "outputs": 2, "alpha": 0.5, "beta": 0.5}
    with pytest.raises(FrontendError, match="mode is 'fast'"):
        run_node("Momentum", inputs, mode="fast", norm_coefficient=0.0, **options)
    with pytest.raises(FrontendError, match="2 tensors are not groups of 3"):
        run_node("Momentum", inputs[:-1], mode="standard", norm_coefficient=0.0, **options)
