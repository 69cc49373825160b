from __future__ import annotations

import random

import numpy as np

from tilewright.fuzz.case_file import Case
from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.partial_model import PartialModel


def _partial_model(saved: list[Case]) -> PartialModel:
    return PartialModel(random.Random(0), {"": 21}, saved.append)


def test_valid_steps_are_kept_with_their_values() -> None:
    saved: list[Case] = []
    d = _partial_model(saved)
    x = d.give(np.array([1, -2], np.float32), constant=False)
    (y,) = d.attempt(d.node("Relu", [x]))
    assert d.values[y].tolist() == [1, 0]
    (z,) = d.attempt(d.node("Neg", [y]))
    assert d.values[z].tolist() == [-1, 0]
    assert len(saved) == 2
    assert check_case(d.case()).kind == "right"


def test_invalid_steps_are_taken_back() -> None:
    d = _partial_model([])
    x = d.give(np.ones((2, 3), np.float32), constant=False)
    assert d.attempt(d.node("MatMul", [x, x])) == []
    assert (d.nodes, d.refused) == ([], 1)


def test_sizes_may_be_left_open() -> None:
    d = _partial_model([])
    x = d.give(np.ones((2, 3), np.float32), constant=False)
    d.attempt(d.node("Relu", [x]))
    dims = d.case({3: "N"}).model.graph.input[0].type.tensor_type.shape.dim
    assert [dims[0].dim_value, dims[1].dim_param] == [2, "N"]
