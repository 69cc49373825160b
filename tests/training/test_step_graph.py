from __future__ import annotations

import numpy as np
import pytest

from tests.training.nets import batch, net
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.parse import parse_graph
from tilewright.ops.attrs import make_attrs
from tilewright.ops.interpret import run_graph
from tilewright.training.optim import SGD, AdamW
from tilewright.training.step_graph import StepGraph, step_graph
from tilewright.training.trainable import trainable


def run(step: StepGraph, values: dict[str, np.ndarray], numbers: list[float]) -> list[np.ndarray]:
    x, y = batch(0)
    zeros = {n: np.zeros([int(str(d)) for d in t.shape]) for n, t in step.kept.items()}
    kept = {**zeros, **values}
    names = [v.name for v in step.graph.inputs]
    given = [x, y, np.array(numbers), *(kept[n].astype(np.float32) for n in step.kept)]
    found = run_graph(step.graph, dict(zip(names, given, strict=True)))
    return [found[name] for name in step.graph.outputs]


def test_inputs_and_outputs() -> None:
    step = step_graph(trainable(net(), None, None, ["b1", "w2"]), "cross_entropy", AdamW(0.1))
    assert step.batch == ("x", "target")
    assert list(step.kept) == [
        *("b1", "w2", "optimizer.mean.b1", "optimizer.square.b1"),
        *("optimizer.mean.w2", "optimizer.square.w2"),
    ]
    assert len(step.graph.inputs) == 3 + len(step.kept)
    assert len(step.graph.outputs) == 1 + len(step.kept)


def test_a_step_and_a_clipped_one() -> None:
    model = trainable(net(), None, None, None)
    values = dict(model.values)
    plain = run(step_graph(model, "cross_entropy", SGD(1.0)), values, [1.0])
    slopes = [v - after for v, after in zip(values.values(), plain[1:], strict=True)]
    norm = np.sqrt(sum((s * s).sum() for s in slopes))
    clipped = run(step_graph(model, "cross_entropy", SGD(1.0), norm / 4), values, [1.0])
    for value, slope, after in zip(values.values(), slopes, clipped[1:], strict=True):
        np.testing.assert_allclose(after, value - slope / 4, rtol=1e-4, atol=1e-6)
    loose = run(step_graph(model, "cross_entropy", SGD(1.0), norm * 4), values, [1.0])
    for ours, theirs in zip(loose, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


LOSS = """
graph @loss(y: f32[N, 4], off: f32[N, 4], weight: f32[N, 4]) {
  %d: f32[N, 4] = sub(%y, %off)
  %w: f32[N, 4] = mul(%d, %weight)
  %s: f32[] = reduce_sum_square(%w) {axes=[0, 1], keepdims=false}
  return %s
}
"""


def test_a_loss_that_is_a_graph() -> None:
    model = trainable(net(), None, None, None)
    step = step_graph(model, parse_graph(LOSS, make_attrs), SGD(0.1))
    assert step.batch == ("x", "off", "weight")


@pytest.mark.parametrize(
    "text",
    [
        LOSS.replace("y: f32[N, 4]", "y: f32[N, 5]").replace("f32[N, 4]", "f32[N, 5]"),
        LOSS.replace("return %s", "return %w"),
        LOSS.replace("return %s", "return %s, %w"),
    ],
)
def test_losses_that_do_not_fit(text: str) -> None:
    model = trainable(net(), None, None, None)
    with pytest.raises(ConfigError, match=r"train\.loss"):
        step_graph(model, parse_graph(text, make_attrs), SGD(0.1))


def test_a_weight_without_gradient_stays_and_a_loss_of_no_weight_is_refused() -> None:
    constant = """
    graph @loss(y: f32[N, 4], target: f32[]) {
      %a: f32[] = mul(%target, %target)
      return %a
    }
    """
    model = trainable(net(), None, None, None)
    with pytest.raises(ConfigError, match=r"train\.parameter"):
        step_graph(model, parse_graph(constant, make_attrs), SGD(0.1))
