"""Loops, scans and branches meet ONNX's reference: what it runs itself, and what it is given."""

from __future__ import annotations

import numpy as np
import onnx

from tests.for_each import for_each
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.fuzz.onnx_reference import differs_from_reference
from tilewright.fuzz.oracle import Expected, expect, interpreter

# Rows of scalars and of matrices, no condition, a value that is read from outside.
LOOP = parsed("""
g (int64 n, float[2, 3] x) => (float[2, 3] last, float[k] sums, float[k, 2, 3] rows) {
    last, sums, rows = Loop <
        body = b (int64 i, bool c, float[2, 3] h) => (bool d, float[2, 3] t, float s, float[2, 3] r)
    {
        d = Identity (c)
        t = Add (h, x)
        s = ReduceSum <keepdims = 0> (t)
        r = Neg (t)
    }> (n, , x)
}
""")

# A condition ends it, and each step runs a loop of its own.
NESTED = parsed("""
g (float[3] x, float limit) => (float[3] last, float[k, 2, 3] rows) {
    two = Constant <value = int64 {2}> ()
    ten = Constant <value = int64 {10}> ()
    last, rows = Loop <
        body = b (int64 i, bool c, float[3] h) => (bool d, float[3] t, float[2, 3] r)
    {
        t, r = Loop <body = e (int64 j, bool f, float[3] u) => (bool g, float[3] v, float[3] w) {
            g = Identity (f)
            v = Add (u, x)
            w = Mul (v, x)
        }> (two, c, h)
        total = ReduceSum <keepdims = 0> (t)
        d = Less (total, limit)
    }> (ten, , x)
}
""")

SCAN = parsed("""
g (float[2, 4] x, float[2] start) => (float[2] last, float[2, 4] rows) {
    last, rows = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [1], scan_output_directions = [1],
        body = b (float[2] h, float[2] e) => (float[2] t, float[2] r) {
            t = Add (h, e)
            r = Mul (t, e)
        }
    > (start, x)
}
""")

BRANCH = parsed("""
g (bool c, float[3] x) => (float[3] y) {
    y = If (c) <
        then_branch = t () => (float[3] a) { a = Neg (x) },
        else_branch = e () => (float[3] b) { b = Exp (x) }
    >
}
""")


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2.0, shape).astype(np.float32)


CASES = {
    "loop": (LOOP, {"n": np.array(3), "x": _floats(2, 3)}),
    "nested": (NESTED, {"x": _floats(3), "limit": np.array(20, np.float32)}),
    "scan": (SCAN, {"x": _floats(2, 4), "start": _floats(2)}),
    "then": (BRANCH, {"c": np.array(True), "x": _floats(3)}),
    "else": (BRANCH, {"c": np.array(False), "x": _floats(3)}),
}


@for_each("name", CASES)
def test_control_flow_is_compared(name: str) -> None:
    model, given = CASES[name]
    expected = expect(interpreter(model), given)
    assert differs_from_reference(model, given, expected) == ""
    others = [x + 1 for x in expected.outputs]
    wrong = differs_from_reference(model, given, Expected(others, expected.spread, False))
    assert "in the reference" in str(wrong)


def test_a_loop_that_a_converter_misreads_is_seen() -> None:
    """Rows in another order, as a wrong converter would give them."""
    model, given = CASES["loop"]
    expected = expect(interpreter(model), given)
    last, sums, rows = expected.outputs
    turned = Expected([last, sums[::-1], rows], expected.spread, False)
    assert "output 1" in str(differs_from_reference(model, given, turned))


def test_rows_of_no_step_are_not_compared() -> None:
    given = {"n": np.array(0), "x": _floats(2, 3)}
    expected = expect(interpreter(LOOP), given)
    assert expected.outputs[2].shape == (0, 2, 3)
    assert differs_from_reference(LOOP, given, expected) is None


def test_models_are_valid() -> None:
    for model, _ in CASES.values():
        onnx.checker.check_model(model)
