"""Which form of a model runs: compiled once, in segments where sizes are not what they seem."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import affine, assert_alike, model, tensor
from tilewright.compat.onnxruntime import model_variants
from tilewright.core.config import override
from tilewright.driver import compile_graph
from tilewright.driver.segmented.model import SegmentedModel

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_new_sizes_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ours.InferenceSession(affine().SerializeToString())

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(model_variants, "compile_model", refuse)
    monkeypatch.setattr(model_variants, "compile_segmented", refuse)
    for batch in (1, 2, 7, 33):
        x = np.ones((batch, 3), np.float32)
        np.testing.assert_array_equal(session.run(["z"], {"x": x, "y": x})[0], 2 * x)


def test_sizes_of_one_name_that_differ_are_compiled_once() -> None:
    session = ours.InferenceSession(affine().SerializeToString())
    for batch in (2, 5, 9):
        y = np.ones((batch, 3), np.float32)
        outputs = session.run(["z"], {"x": X[:1], "y": y})
        np.testing.assert_array_equal(outputs[0], X[:1] + y)
    staged = session._engine._form._segmented
    assert staged is not None
    assert staged.explain().startswith("1 segments")


def test_a_size_that_broadcasts() -> None:
    data = model(
        [helper.make_node("Add", ["x", "y"], ["z"])],
        [tensor("x", ["a", 3]), tensor("y", ["b", 3])],
        [tensor("z", None)],
    ).SerializeToString()
    for rows in (1, 2):
        feed = {"x": X[:rows], "y": X}
        assert_alike(lambda e, feed=feed: e.InferenceSession(data).run(None, feed))
    feed = {"x": np.ones((5, 3), np.float32), "y": X}
    assert_alike(lambda e: e.InferenceSession(data).run(None, feed))


def test_a_model_that_waits_for_values_runs_in_stages() -> None:
    data = model(
        [helper.make_node("Reshape", ["x", "shape"], ["z"])],
        [tensor("x", ["a", 3]), tensor("shape", [None], 7)],
        [tensor("z", None)],
    ).SerializeToString()
    assert isinstance(ours.InferenceSession(data)._engine.direct, SegmentedModel)
    for shape in ([6], [3, 2], [1, -1, 1]):
        feed = {"x": X, "shape": np.array(shape, np.int64)}
        assert_alike(lambda e, feed=feed: e.InferenceSession(data).run(None, feed))


def test_stages_are_kept_on_disk(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    data = model(
        [
            helper.make_node("Reshape", ["x", "shape"], ["r"]),
            helper.make_node("Tanh", ["r"], ["z"]),
        ],
        [tensor("x", ["a", 3]), tensor("shape", [None], 7)],
        [tensor("z", None)],
    ).SerializeToString()
    feed = {"x": X, "shape": np.array([3, 2], np.int64)}
    with override(cache_dir=tmp_path):
        first = ours.InferenceSession(data).run(None, feed)
        monkeypatch.setattr(compile_graph, "lower_graph", _refuse)
        again = ours.InferenceSession(data).run(None, feed)
    np.testing.assert_array_equal(first, again)


def _refuse(*given: object) -> None:
    raise AssertionError("compiled again")


def test_initializers_that_are_fed() -> None:
    session = ours.InferenceSession(affine().SerializeToString())
    for factor in (0.0, 2.0):
        feed = {"x": X, "y": X, "w": np.full(3, factor, np.float32)}
        np.testing.assert_array_equal(session.run(["o"], feed)[0], 2 * X * factor)
    assert len(session._engine._with_inputs) == 1
