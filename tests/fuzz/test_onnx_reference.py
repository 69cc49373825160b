from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from tests.for_each import for_each
from tests.fuzz.models import case_of
from tilewright.fuzz.case_file import Case
from tilewright.fuzz.onnx_reference import KNOWN_DIFFERENCES, differs_from_reference
from tilewright.fuzz.oracle import Expected, expect, interpreter


def _case(op: str, x: np.ndarray) -> Case:
    return case_of([helper.make_node(op, ["x"], ["y"])], {"x": x}, ["y"])


def _said(case: Case, expected: Expected | None = None) -> str | None:
    expected = expected or expect(interpreter(case.model), case.runs[0])
    return differs_from_reference(case.model, case.runs[0], expected)


@for_each("dtype", [np.float32, np.float64, np.float16])
@for_each("op", ["Exp", "ReduceSum", "Softmax", "NonZero"])
def test_the_same_reading(op: str, dtype: type) -> None:
    x = np.linspace(-2, 3, 15, dtype=np.float64).reshape(3, 5).astype(dtype)
    assert _said(_case(op, x)) == ""


def test_another_reading_is_seen() -> None:
    case = _case("Neg", np.arange(3, dtype=np.float32))
    other = Expected([np.arange(3, dtype=np.float32)], [np.zeros(3)], True)
    assert "in the reference" in str(_said(case, other))


def test_what_the_reference_gets_wrong_is_not_compared() -> None:
    case = _case("LpNormalization", -np.ones(3, np.float32))
    assert "LpNormalization" in KNOWN_DIFFERENCES
    assert _said(case, Expected([np.zeros(3, np.float32)], [np.zeros(3)], True)) is None


def test_types_beyond_onnx_are_not_compared() -> None:
    case = _case("Softmax", np.ones((2, 3), np.int64))
    assert _said(case, Expected([np.zeros((2, 3), np.int64)], [np.zeros((2, 3))], True)) is None


@for_each(("dtype", "compared"), [(np.float32, True), (np.int32, False)])
def test_some_operators_are_not_compared_on_integers(dtype: type, compared: bool) -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Resize", ["a", "", "", "sizes"], ["y"], mode="linear"),
    ]
    given = {"x": np.array([0, 1], dtype), "sizes": np.array([3])}
    expected = Expected([np.array([7, 7, 7], dtype)], [np.zeros(3)], True)
    assert bool(_said(case_of(nodes, given, ["y"]), expected)) is compared


@for_each(("mode", "compared"), [("linear", False), ("nearest", True)])
def test_integers_are_compared_where_they_are_only_chosen(mode: str, compared: bool) -> None:
    x = np.ones((1, 1, 2, 2), np.uint8)
    given = {"x": x, "grid": np.zeros((1, 1, 1, 2), np.float32)}
    case = case_of([helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode)], given, ["y"])
    assert _said(case) == ("" if compared else None)
    other = Expected([np.full((1, 1, 1, 1), 7, np.uint8)], [np.zeros((1, 1, 1, 1))], True)
    assert bool(_said(case, other)) is compared


def test_a_mean_of_large_integers_is_not_compared() -> None:
    assert _said(_case("ReduceMean", np.array(3310110838995218588))) is None


def test_a_wider_type_than_the_reference_gives_is_compared_as_such() -> None:
    case = _case("Neg", np.arange(3, dtype=ml_dtypes.bfloat16))
    near = Expected([-np.arange(3, dtype=np.float32) * 1.01], [np.zeros(3)], True)
    far = Expected([-np.arange(3, dtype=np.float32) * 100], [np.zeros(3)], True)
    other = Expected([np.zeros(2, np.float32)], [np.zeros(2)], True)
    assert _said(case, near) == ""
    assert "differ" in str(_said(case, far))
    assert _said(case, other)


def test_a_negative_number_without_a_sign_is_not_compared() -> None:
    to = onnx.TensorProto.FLOAT8E8M0
    case = case_of([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": -np.ones(2)}, ["y"])
    assert _said(case, Expected([np.zeros(2)], [np.zeros(2)], True)) is None


@for_each(("number", "compared"), [(-3.0, False), (15.0, True), (16.0, False)])
def test_a_float_beyond_an_integer_is_not_compared(number: float, compared: bool) -> None:
    to = onnx.TensorProto.UINT4
    x = np.array([number], ml_dtypes.float8_e4m3fn)
    nodes = [helper.make_node("Cast", ["x"], ["a"], to=to), helper.make_node("Neg", ["b"], ["y"])]
    nodes.insert(1, helper.make_node("Cast", ["a"], ["b"], to=onnx.TensorProto.FLOAT))
    other = Expected([np.array([7], np.float32)], [np.zeros(1)], True)
    assert _said(case_of(nodes, {"x": x}, ["y"])) == ("" if compared else None)
    assert bool(_said(case_of(nodes, {"x": x}, ["y"]), other)) is compared


@for_each(("far", "compared"), [(4.0, True), (300.0, False)])
def test_shares_that_have_become_0_are_not_compared(far: float, compared: bool) -> None:
    case = _case("LogSoftmax", np.array([[0.0, far]], np.float32))
    assert _said(case) == ("" if compared else None)
    assert (
        bool(_said(case, Expected([np.ones((1, 2), np.float32)], [np.zeros((1, 2))], True)))
        is compared
    )


@for_each(("opset", "compared"), [(12, False), (13, True)])
def test_what_meant_something_else_is_not_compared(opset: int, compared: bool) -> None:
    case = _case("Softmax", np.zeros((2, 3), np.float32))
    case.model.opset_import[0].version = opset
    other = Expected([np.full((2, 3), 9.0, np.float32)], [np.zeros((2, 3))], True)
    assert bool(_said(case, other)) is compared


@for_each(("length", "compared"), [(1, False), (3, True)])
def test_one_pixel_is_not_compared(length: int, compared: bool) -> None:
    mode = {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": "linear"}
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **mode)
    given = {"x": np.array([[0.0, 1.0]], np.float32), "sizes": np.array([3, length])}
    other = Expected([np.full((3, length), 9.0, np.float32)], [np.zeros((3, length))], True)
    assert bool(_said(case_of([node], given, ["y"]), other)) is compared


def test_infinities_that_come_up_on_the_way() -> None:
    nodes = [
        helper.make_node("Log", ["x"], ["a"]),
        helper.make_node("DynamicQuantizeLinear", ["a"], ["y", "s", "z"]),
    ]
    for number, compared in ((0.0, False), (3.0, True)):
        case = case_of(nodes, {"x": np.array([number, 1], np.float32)}, ["y"])
        other = Expected([np.array([7, 7], np.uint8)], [np.zeros(2)], True)
        assert bool(_said(case, other)) is compared


@for_each(("size", "compared"), [(16, False), (17, True), (18, True)])
def test_windows_that_reach_beyond_the_end(size: int, compared: bool) -> None:
    """Where two places are missing, the reference has one of them before the first element."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3], strides=[3], ceil_mode=1)
    case = case_of([node], {"x": np.arange(size, dtype=np.float32).reshape(1, 1, size)}, ["y"])
    other = Expected([np.full((1, 1, 6), 99.0, np.float32)], [np.zeros((1, 1, 6))], True)
    assert _said(case) == ("" if compared else None)
    assert bool(_said(case, other)) is compared


@for_each(
    ("dtype", "number", "compared"),
    [
        (np.float32, np.nan, True),
        (ml_dtypes.bfloat16, 7, True),
        (ml_dtypes.bfloat16, np.nan, False),
    ],
)
def test_what_numpy_does_not_sort_is_not_compared(
    dtype: type, number: float, compared: bool
) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=0)
    given = {"x": np.array([3, number, 1], dtype), "k": np.array([1])}
    case = case_of([node], given, ["y"])
    case.model.opset_import[0].version = 24
    assert _said(case) == ("" if compared else None)
    assert bool(_said(case, Expected([np.array([9], dtype)], [np.zeros(1)], True))) is compared
