"""Saved models in segments: everything is inside the file, compiled segments are used again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import AXES, BRANCHES, SEQUENCE, TEXTS
from tilewright.core.errors import ExecutionError
from tilewright.driver.load import load
from tilewright.driver.segmented.file import portable, saved_model
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.frontends.onnx.model.read import read_model
from tilewright.runtime.container import Container
from tilewright.runtime.load import load as load_without_compiler

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
A = np.array(["a", "b", "ä"], object)
CASES = {
    "axes": (AXES, (X, np.array([1]))),
    "sequence": (SEQUENCE, (X,)),
    "branches": (BRANCHES, (np.array(True), X)),
    "texts": (TEXTS, (A, A[::-1], np.array([2, 0]))),
}


def staged(source: Any, **options: Any) -> SegmentedModel:
    made = tw.compile(source, threads=1, cache=False, **options)
    assert isinstance(made, SegmentedModel)
    return made


def loaded(path: Path) -> SegmentedModel:
    made = load(path)
    assert isinstance(made, SegmentedModel)
    made.set_threads(1)
    return made


def without_compiler(model: SegmentedModel) -> SegmentedModel:
    def refuse(graph: object, options: object) -> Container:
        raise AssertionError("compiled again")

    model._compile_graph.compile_container = refuse  # type: ignore[attr-defined]
    return model


@pytest.mark.parametrize("name", CASES)
def test_stages_that_have_run_are_in_the_file(name: str, tmp_path: Path) -> None:
    source, inputs = CASES[name]
    with staged(source) as model:
        wanted = model(*inputs)
        path = model.save(tmp_path / "model.tw")
    with without_compiler(loaded(path)) as model:
        assert model.inputs == staged(source).inputs
        found = model(*inputs)
        np.testing.assert_equal(found, wanted)
        again = model.save(tmp_path / "again.tw")
    with without_compiler(loaded(again)) as model:
        np.testing.assert_equal(model(*inputs), wanted)


def test_what_has_not_run_is_compiled_when_it_does(tmp_path: Path) -> None:
    path = staged(AXES, dims={"m": 4}).save(tmp_path / "model.tw")
    with loaded(path) as model:
        assert model.segments == 0
        np.testing.assert_array_equal(model(X, np.array([0])), np.maximum(X.sum(0), 0))
        assert model.segments == 1
        with pytest.raises(ExecutionError, match="input x is"):
            model(X.T, np.array([0]))


def with_weights(folder: Path, external: bool) -> Path:
    """A model in segments with a long weight, and one in a nested graph."""
    w = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["a"])],
        "then",
        [],
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(2 * w, "v")],
    )
    other = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["b"], keepdims=0)],
        "else",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["y", "w"], ["x"]),
        helper.make_node("If", ["c"], ["z"], name="choice", then_branch=inner, else_branch=other),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 40]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=external, size_threshold=100)
    return path


@pytest.mark.parametrize("external", [False, True])
def test_everything_is_inside_the_file(tmp_path: Path, external: bool) -> None:
    source = with_weights(tmp_path / "there", external)
    y = np.ones((2, 40), np.float32)
    with staged(source) as model:
        wanted = model(y, np.array(True))
    path = staged(source).save(tmp_path / "model.tw")
    shutil.rmtree(tmp_path / "there")
    with loaded(path) as model:
        np.testing.assert_array_equal(model(y, np.array(True)), wanted)


def test_weights_are_not_in_the_message(tmp_path: Path) -> None:
    model = read_model(with_weights(tmp_path / "there", external=True))
    proto, raw = portable(model)
    assert raw.keys() == {0}
    assert not proto.graph.initializer[0].raw_data
    assert not proto.graph.initializer[0].external_data
    assert model.proto.graph.initializer[0].external_data, "the model stays as it is"


def test_damage_and_the_compiler_are_told(tmp_path: Path) -> None:
    path = staged(AXES).save(tmp_path / "model.tw")
    with pytest.raises(ExecutionError, match="needs the compiler"):
        load_without_compiler(path)
    about = {"segmented": {"file": "f", "raw": []}}
    with pytest.raises(ExecutionError, match="no model in it"):
        saved_model(Container(about, {}, np.empty(0, np.uint8)))


def test_no_library_can_be_made_and_the_node_is_named(tmp_path: Path) -> None:
    path = staged(with_weights(tmp_path / "there", external=False)).save(tmp_path / "model.tw")
    with loaded(path) as model, pytest.raises(tw.UnsupportedError) as caught:
        model.export_library(tmp_path / "lib.so")
    assert "node choice" in str(caught.value)
    assert not (tmp_path / "lib.so").exists()
