"""`tw.grad` beside torch's autograd, and its options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.models import mlp, save

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(mlp("N"), tmp_path / "model.onnx")


def reference(x: np.ndarray, weights: dict[str, np.ndarray]) -> tuple[object, dict[str, object]]:
    t = {"x": torch.tensor(x), **{n: torch.tensor(w) for n, w in weights.items()}}
    for value in t.values():
        value.requires_grad_(True)
    hidden = torch.relu(t["x"] @ t["w1"] + t["b1"])
    y = torch.softmax(hidden @ t["w2"] + t["b2"], -1)
    (y**2).sum().backward()
    return y, {n: v.grad for n, v in t.items()}


def squared(path: Path) -> object:
    """The model followed by the sum of squares, as a graph with a loss."""
    from tilewright.autodiff.gradient_graph import opened
    from tilewright.driver.sources import import_graph
    from tilewright.ops.reduction.reduce import ReduceAttrs

    graph = import_graph(str(path))
    g = opened(graph)
    attrs = ReduceAttrs((0, 1), keepdims=False)
    loss = g.add("reduce_sum_square", graph.outputs[0], attrs=attrs, name="loss")
    return g.graph(*graph.outputs, loss)


def test_against_torch(model: Path) -> None:
    graph = squared(model)
    names = ["w1", "b1", "w2", "b2", "x"]
    weights = {c.name: c.data for c in graph.constants if c.name in names}  # type: ignore[attr-defined]
    step = tw.value_and_grad(graph, names, of="loss", parameters=["w2"], cache=False)
    assert [p.name for p in step.inputs] == ["x", "w2"]
    for rows in (3, 1, 7):
        x = RNG.normal(size=(rows, 16)).astype(np.float32)
        changed = {**weights, "w2": RNG.normal(size=(32, 5)).astype(np.float32)}
        y, expected = reference(x, changed)
        probabilities, loss, *found = step(x, changed["w2"])
        np.testing.assert_allclose(probabilities, y.detach(), rtol=1e-4, atol=1e-6)  # type: ignore[attr-defined]
        np.testing.assert_allclose(loss, (probabilities**2).sum(), rtol=1e-5)
        for name, dx in zip(names, found, strict=True):
            np.testing.assert_allclose(dx, expected[name], rtol=1e-3, atol=1e-5, err_msg=name)


def test_only_gradients(model: Path) -> None:
    by_input = tw.grad(str(model), ["x"], dims={"N": 2}, cache=False)
    assert [p.name for p in by_input.outputs] == ["grad_x"]
    dx = by_input(np.ones((2, 16), np.float32))
    np.testing.assert_allclose(dx, 0, atol=1e-6)  # probabilities sum to one


def test_refusals(model: Path) -> None:
    with pytest.raises(tw.Error, match="no input or weight named 'y'"):
        tw.grad(str(model), ["y"])
    with pytest.raises(TypeError):
        tw.grad(str(model), ["x"], colour="red")
