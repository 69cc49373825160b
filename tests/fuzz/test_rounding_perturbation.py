from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import ModelProto, helper, parser

from tests.for_each import for_each
from tests.fuzz.models import case_of
from tilewright.fuzz.case_file import Case
from tilewright.fuzz.oracle import expect, interpreter, mismatch
from tilewright.fuzz.rounding_perturbation import EXACT, PerturbedEvaluator
from tilewright.ops.registry import op_table
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS

EPS = float(np.finfo(np.float32).eps)


def _spread(model: ModelProto, **given: np.ndarray) -> np.ndarray:
    found = expect(interpreter(model), given, 8).spread[0]
    assert found is not None
    return found


def _is_right(case: Case, found: np.ndarray, machine: CpuTarget | None = None) -> bool:
    expected = expect(interpreter(case.model), case.runs[0], machine=machine)
    return not mismatch(found, expected.outputs[0], expected.spread[0], expected.exact)


def test_exact_operators_exist() -> None:
    assert set(op_table()) >= EXACT


def test_what_cancels_within_an_operator_shows() -> None:
    # the next state is (1 - z) * n + z * h with z close to 1
    given = {"x": np.ones((1, 1, 1), np.float32)}
    w = np.array([6.0, 0.0, 1.0], np.float32).reshape(1, 3, 1)
    given |= {"w": w, "r": np.zeros((1, 3, 1), np.float32)}
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=1)
    case = case_of([node], given, ["y"])
    size = float(interpreter(case.model)(given, PerturbedEvaluator(0))[0].reshape(()))
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
    (found,) = interpreter(case.model)(given, PerturbedEvaluator(0))
    far, near = _spread(case.model, **given) / np.abs(found)
    assert far > 8 * near


def test_the_errors_of_a_long_sum_may_add_up() -> None:
    """Equal terms are rounded to the same side again and again if they are added in turn."""
    x = np.full((1, 1 << 14), 1.1414592, np.float32)
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    case = case_of([node], {"x": x, "axes": np.array([1])}, ["y"])
    in_turn = np.add.accumulate(x, axis=1)[:, -1]
    exact = x.sum(axis=1, dtype=np.float64).astype(np.float32)
    assert abs(in_turn[0] / exact[0] - 1) > 100 * EPS
    assert _is_right(case, in_turn)
    assert _is_right(case, exact)
    assert not _is_right(case, exact - x[:, 0] * 100)
    few = case_of([node], {"x": x[:, :8].copy(), "axes": np.array([1])}, ["y"])
    assert not _is_right(few, exact / (1 << 11) * np.float32(1 + 100 * EPS))


INF = np.inf


@for_each(
    ("x", "w", "right"),
    [
        ([-1, 1e30], [INF, 1e30], (-INF, np.nan)),  # rounded with the sum, or beyond the range
        ([1, 2], [INF, 3], (INF,)),
        ([1, 1e30], [INF, 1e30], (INF,)),
        ([1, 1e30], [0, 1e30], (INF,)),
        ([1, -1], [INF, INF], (np.nan,)),
    ],
    ids=str,
)
def test_a_product_beyond_the_range_beside_an_infinity(
    x: list[float], w: list[float], right: tuple[float, ...]
) -> None:
    given = {"x": np.array([x], np.float32), "w": np.array([[n] for n in w], np.float32)}
    product = case_of([helper.make_node("MatMul", ["x", "w"], ["y"])], given, ["y"])
    parts = {"a": x[1], "b": w[1], "c": x[0] * w[0]}
    given = {name: np.array([n], np.float32) for name, n in parts.items()}
    nodes = [helper.make_node("Mul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "c"], ["y"])]
    steps = case_of(nodes, given, ["y"])
    for case, shape in ((product, (1, 1)), (steps, (1,))):
        for value in (-INF, INF, np.nan, 1.0):
            found = np.full(shape, value, np.float32)
            expected = any(value == r or (np.isnan(value) and np.isnan(r)) for r in right)
            assert _is_right(case, found) == (expected or len(right) > 1), value


def _bf16(*values: float) -> np.ndarray:
    return np.array([values], ml_dtypes.bfloat16)


@for_each("target", ["sapphirerapids", "neoverse-v1", "x86-64-v3"])
def test_machines_that_multiply_bf16_know_no_subnormal_numbers(target: str) -> None:
    machine = CPUS[target]
    least = float(np.finfo(np.float32).smallest_normal)
    given = {"x": _bf16(0.5, least / 8), "w": _bf16(least, 2.0).T.copy()}
    product = case_of([helper.make_node("MatMul", ["x", "w"], ["y"])], given, ["y"])
    assert _is_right(product, _bf16(0.75 * least), machine)
    assert _is_right(product, _bf16(0.0), machine) == (target != "x86-64-v3")
    usual = case_of(product.model.graph.node, {**given, "x": _bf16(8.0, 1.0)}, ["y"])
    assert not _is_right(usual, _bf16(0.0), machine)
    added = case_of([helper.make_node("Add", ["x", "x"], ["y"])], given, ["y"])
    assert _is_right(added, _bf16(1.0, least / 4), machine)
    assert not _is_right(added, _bf16(1.0, 0.0), machine)


def test_shares_that_are_no_normal_numbers_may_be_lost() -> None:
    given = {"x": np.array([[0.0, -90.0]], np.float32)}
    case = case_of([helper.make_node("Softmax", ["x"], ["y"])], given, ["y"])
    assert _is_right(case, np.array([[1.0, 0.0]], np.float32))
    assert not _is_right(case, np.array([[1.0, 1e-36]], np.float32))
