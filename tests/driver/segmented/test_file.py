"""Saved models in segments: everything is inside the file, compiled segments are used again."""

from __future__ import annotations

import pickle
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import (
    AXES,
    BRANCHES,
    SEQUENCE,
    TEXTS,
    with_weights,
)
from tilewright.core.errors import ExecutionError
from tilewright.driver.load import load
from tilewright.driver.segmented.file import saved_model
from tilewright.driver.segmented.model import SegmentedModel
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


def segmented(source: Any, **options: Any) -> SegmentedModel:
    made = tw.compile(source, threads=1, cache=False, **options)
    assert isinstance(made, SegmentedModel)
    return made


def loaded(path: Path) -> SegmentedModel:
    made = load(path)
    assert isinstance(made, SegmentedModel)
    made.set_threads(1)
    return made


def refuse(graph: object, options: object) -> Container:
    raise AssertionError("compiled again")


def without_compiler(model: SegmentedModel) -> SegmentedModel:
    model._compile_graph.compile_container = refuse  # type: ignore[attr-defined]
    return model


@pytest.mark.parametrize("name", CASES)
def test_segments_that_have_run_are_in_the_file(name: str, tmp_path: Path) -> None:
    source, inputs = CASES[name]
    with segmented(source) as model:
        wanted = model(*inputs)
        path = model.save(tmp_path / "model.tw")
    with without_compiler(loaded(path)) as model:
        assert model.inputs == segmented(source).inputs
        found = model(*inputs)
        np.testing.assert_equal(found, wanted)
        again = model.save(tmp_path / "again.tw")
    with without_compiler(loaded(again)) as model:
        np.testing.assert_equal(model(*inputs), wanted)


def test_what_has_not_run_is_compiled_when_it_does(tmp_path: Path) -> None:
    path = segmented(AXES, dims={"m": 4}).save(tmp_path / "model.tw")
    with loaded(path) as model:
        assert model.segments == 0
        np.testing.assert_array_equal(model(X, np.array([0])), np.maximum(X.sum(0), 0))
        assert model.segments == 1
        with pytest.raises(ExecutionError, match="input x is"):
            model(X.T, np.array([0]))


def disabled_passes(model: SegmentedModel) -> tuple[str, ...]:
    return model._segment_cache.options.disable_passes


def test_passes_stay_disabled(tmp_path: Path) -> None:
    with segmented(AXES, disable_passes=["cse"]) as model:
        wanted = model(X, np.array([1]))
        path = model.save(tmp_path / "model.tw")
    with without_compiler(loaded(path)) as model:
        assert disabled_passes(model) == ("cse",)
        np.testing.assert_array_equal(model(X, np.array([1])), wanted)


@pytest.mark.parametrize("name", CASES)
def test_pickling(name: str) -> None:
    source, inputs = CASES[name]
    with segmented(source, disable_passes=["cse"]) as model:
        fresh = pickle.loads(pickle.dumps(model))
        wanted = model(*inputs)
        run, deep = pickle.loads(pickle.dumps(model)), deepcopy(model)
    for copy in (without_compiler(run), without_compiler(deep), fresh):
        with copy:
            assert (repr(copy), copy.threads) == (repr(model), 1)
            assert copy.break_reason == model.break_reason
            assert disabled_passes(copy) == ("cse",)
            np.testing.assert_equal(copy(*inputs), wanted)


def test_pickling_keeps_weights(tmp_path: Path) -> None:
    with segmented(with_weights(tmp_path / "there", external=True)) as model:
        y = np.ones((2, 40), np.float32)
        wanted = model(y, np.array(True))
        pickled = pickle.dumps(model)
    shutil.rmtree(tmp_path / "there")
    with without_compiler(pickle.loads(pickled)) as copy:
        np.testing.assert_array_equal(copy(y, np.array(True)), wanted)
        with pickle.loads(pickle.dumps(copy)) as again:
            np.testing.assert_array_equal(again(y, np.array(True)), wanted)


@pytest.mark.parametrize("external", [False, True])
def test_everything_is_inside_the_file(tmp_path: Path, external: bool) -> None:
    source = with_weights(tmp_path / "there", external)
    y = np.ones((2, 40), np.float32)
    with segmented(source) as model:
        wanted = model(y, np.array(True))
    path = segmented(source).save(tmp_path / "model.tw")
    shutil.rmtree(tmp_path / "there")
    with loaded(path) as model:
        np.testing.assert_array_equal(model(y, np.array(True)), wanted)


def test_damage_and_the_compiler_are_told(tmp_path: Path) -> None:
    path = segmented(AXES).save(tmp_path / "model.tw")
    with pytest.raises(ExecutionError, match="needs the compiler"):
        load_without_compiler(path)
    about = {"segmented": {"file": "f", "raw": []}}
    with pytest.raises(ExecutionError, match="no model in it"):
        saved_model(Container(about, {}, np.empty(0, np.uint8)))


def test_no_library_can_be_made_and_the_node_is_named(tmp_path: Path) -> None:
    path = segmented(with_weights(tmp_path / "there", external=False)).save(tmp_path / "model.tw")
    with loaded(path) as model, pytest.raises(tw.UnsupportedError) as caught:
        model.export_library(tmp_path / "lib.so")
    assert "node choice" in str(caught.value)
    assert not (tmp_path / "lib.so").exists()
