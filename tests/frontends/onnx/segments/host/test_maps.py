"""Maps made from tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError

DOMAIN = "ai.onnx.ml"


def run(op: str, value: Any, **attrs: Any) -> Any:
    return run_host(f"{DOMAIN}::{op}", value, **attrs)[0]


def test_scores_by_label() -> None:
    scores = np.array([[0.25, 0.75], [1, 0]], np.float32)
    assert run("ZipMap", scores, classlabels_strings=["a", "b"])[0] == {"a": 0.25, "b": 0.75}
    assert run("ZipMap", scores[1], classlabels_int64s=[4, 5]) == [{4: 1.0, 5: 0.0}]
    with pytest.raises(ExecutionError, match="1 labels for scores"):
        run("ZipMap", scores, classlabels_strings=["a"])
    with pytest.raises(ExecutionError, match="no labels"):
        run("ZipMap", scores)


def test_values_by_vocabulary() -> None:
    found = run("DictVectorizer", {"b": 2, "z": 9}, string_vocabulary=["a", "b"])
    assert found.tolist() == [[0, 2]]
    assert found.dtype == np.int64
    rows = [{1: np.float64(0.5)}, {2: np.float64(3)}]
    found = run("DictVectorizer", rows, int64_vocabulary=[1, 2])
    assert found.tolist() == [[0.5, 0], [0, 3]]
    assert found.dtype == np.float64
    assert run("DictVectorizer", {1: "x"}, int64_vocabulary=[1, 2]).tolist() == [["x", ""]]


def test_values_by_key() -> None:
    assert run("CastMap", {5: "2.5", 1: "1"}).tolist() == [[1, 2.5]]
    sparse = {"map_form": "SPARSE", "max_map": 3}
    assert run("CastMap", {1: 7.0}, cast_to="TO_INT64", **sparse).tolist() == [[0, 7, 0]]
    assert run("CastMap", {1: 7}, cast_to="TO_STRING", **sparse).tolist() == [["", "7", ""]]
    with pytest.raises(ExecutionError, match="no number"):
        run("CastMap", {1: "x"})
    with pytest.raises(ExecutionError, match="cast_to is 'TO_BOOL'"):
        run("CastMap", {1: 1.0}, cast_to="TO_BOOL")
