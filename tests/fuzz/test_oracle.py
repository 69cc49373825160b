from __future__ import annotations

import numpy as np
from onnx import helper

from tests.fuzz.models import case_of
from tilewright.fuzz.oracle import distance, expect, interpreter, mismatch


def test_data_movement_is_exact() -> None:
    x = np.array([[1, np.nan], [np.inf, -0.0]], np.float32)
    case = case_of([helper.make_node("Transpose", ["x"], ["y"])], {"x": x}, ["y"])
    found = expect(interpreter(case.model), case.runs[0])
    assert found.exact
    assert not mismatch(x.T.copy(), found.outputs[0], found.spread[0], found.exact)
    off = np.nextafter(x.T, np.float32(5)).astype(np.float32)
    assert mismatch(off, found.outputs[0], found.spread[0], found.exact)


def test_a_sum_may_be_rounded_as_its_operands_make_it() -> None:
    x = np.array([1e6, -1e6, 1.0], np.float32)
    case = case_of([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {"x": x}, ["y"])
    found = expect(interpreter(case.model), case.runs[0])
    spread = found.spread[0]
    assert spread is not None
    assert 0.01 < float(spread) < 10
    near, far = np.array(1.1, np.float32), np.array(1000, np.float32)
    assert not mismatch(near, found.outputs[0], spread, found.exact)
    assert mismatch(far, found.outputs[0], spread, found.exact)


def test_what_is_not_finite_is_far_from_what_is() -> None:
    x, y = np.array([np.nan, np.inf, 1.0, np.inf]), np.array([np.nan, 1.0, 1.0, -np.inf])
    assert distance(x, y).tolist() == [0, np.inf, 0, np.inf]
    assert distance(np.array([(1 << 62) + 1]), np.array([1 << 62])).tolist() == [1]


def test_a_model_in_stages_is_interpreted_too() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    given = {"x": np.ones((2, 3), np.float32), "axes": np.array([1])}
    case = case_of(nodes, given, ["y"])
    assert expect(interpreter(case.model), given).outputs[0].tolist() == [3, 3]


def test_shapes_and_types_must_agree() -> None:
    x = np.zeros(2, np.float32)
    assert "shape" in mismatch(x, np.zeros(3, np.float32), np.zeros(3), True)
    assert "float32" in mismatch(x, x.astype(np.float64), np.zeros(2), True)


def test_an_error_that_depends_on_rounding_leaves_nothing_to_compare() -> None:
    x = np.array([1, 1, 2], np.float32)  # equal elements, which other roundings make unequal
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Unique", ["e"], ["u"]),
        helper.make_node("Reshape", ["u", "two"], ["y"]),
    ]
    case = case_of(nodes, {"x": x, "two": np.array([2])}, ["y"])
    found = expect(interpreter(case.model), case.runs[0])
    assert found.spread == [None]
    assert found.outputs[0].shape == (2,)
