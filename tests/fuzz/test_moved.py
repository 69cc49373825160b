from __future__ import annotations

import numpy as np
from onnx import ModelProto, helper, parser

from tests.fuzz.models import case_of
from tilewright.fuzz.moved import EXACT, Moved
from tilewright.fuzz.oracle import expect, interpreter
from tilewright.ops.table import op_table

EPS = float(np.finfo(np.float32).eps)


def _spread(model: ModelProto, **given: np.ndarray) -> np.ndarray:
    found = expect(interpreter(model), given, 8).spread[0]
    assert found is not None
    return found


def test_exact_operators_exist() -> None:
    assert set(op_table()) >= EXACT


def test_what_cancels_within_an_operator_shows() -> None:
    # the next state is (1 - z) * n + z * h with z close to 1
    given = {"x": np.ones((1, 1, 1), np.float32)}
    w = np.array([6.0, 0.0, 1.0], np.float32).reshape(1, 3, 1)
    given |= {"w": w, "r": np.zeros((1, 3, 1), np.float32)}
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=1)
    case = case_of([node], given, ["y"])
    size = float(interpreter(case.model)(given, Moved(0))[0].reshape(()))
    assert 0 < size < 0.01
    assert EPS / 4 < float(_spread(case.model, **given).reshape(())) < 16 * EPS


def test_what_a_loop_does_each_time_is_moved_each_time() -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[2] x) => (y) {
            y = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity(c)
                t = Exp(s)
            }> (n, , x)
        }""")
    x = np.array([0.0, 1.0], np.float32)
    once, thrice = (_spread(model, n=np.array(n), x=x) for n in (1, 3))
    assert (once > 0).all()
    assert (thrice > 10 * once).any()


def test_a_branch_that_moves_elements_stays_exact() -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[2,3] x) => (y) {
            y = If (c) <then_branch = a () => (float[3,2] p) { p = Transpose(x) },
                        else_branch = b () => (float[3,2] q) { q = Transpose(x) }>
        }""")
    given = {"c": np.array(True), "x": np.ones((2, 3), np.float32)}
    assert expect(interpreter(model), given).exact


def test_whether_an_infinity_of_no_weight_counts_is_open() -> None:
    node = helper.make_node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode="asymmetric",
    )
    x = np.array([1, 2, 3, np.inf], np.float32)
    given = {"x": x, "sizes": np.array([2])}  # elements 0 and 2, and 0 times what is behind them
    spread = _spread(case_of([node], given, ["y"]).model, **given)
    assert spread[0] < 1e-5
    assert spread[1] == np.inf


def test_a_product_that_leaves_the_range_on_the_way_may_be_anything() -> None:
    node = helper.make_node("ReduceProd", ["x"], ["y"], axes=[1])
    large, usual, small = [1e30, 1e30, 1e-30], [1e30, 2.0, 1e-30], [1e-30, 1e-30, 1e30]
    given = {"x": np.array([large, usual, small, [0.0, 1.0, 2.0]], np.float32)}
    case = case_of([node], given, ["y"])
    case.model.opset_import[0].version = 17
    spread = _spread(case.model, **given).reshape(-1)
    assert list(np.isfinite(spread)) == [False, True, False, True]


def test_a_steep_function_of_a_rounded_number() -> None:
    given = {"x": np.array([-16.0, 1.0])}
    case = case_of([helper.make_node("Gelu", ["x"], ["y"])], given, ["y"])
    far, near = _spread(case.model, **given) / np.abs(interpreter(case.model)(given, Moved(0))[0])
    assert far > 8 * near
