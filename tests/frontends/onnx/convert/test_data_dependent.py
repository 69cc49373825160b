"""Slices, parts and counts between bounds that are known only when a model runs."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.for_each import for_each
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.core.errors import ExecutionError, FrontendError
from tilewright.runtime.cpu.executable import Executable

X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_are_clamped_as_onnx_asks(step: int) -> None:
    m = parsed(f"""
        g (float[n, m] x, int64[1] start, int64[1] stop) => (float[] y) {{
            axis = Constant <value = int64[1] {{1}}> ()
            step = Constant <value = int64[1] {{{step}}}> ()
            y = Slice (x, start, stop, axis, step)
        }}
    """)
    far = np.iinfo(np.int64)
    with tw.compile(m, threads=1, cache=False) as model:
        assert isinstance(model, Executable), "no stage is needed for it"
        for start in (0, 2, 5, 6, 9, -1, -6, -9, far.max, far.min):
            for stop in (0, 3, 6, 8, -1, -2, -7, far.max, far.min):
                found = model(X, np.array([start]), np.array([stop]))
                # Backwards it begins at the first element where a start lies before it.
                begin = max(start, -X.shape[1]) if step < 0 else start
                np.testing.assert_array_equal(found, X[:, begin:stop:step])


def test_one_element_broadcasts() -> None:
    m = parsed("""
        g (float[n, m] x, int32[1] t) => (float[] y) {
            axis = Constant <value = int64[1] {1}> ()
            one = Constant <value = int32[1] {1}> ()
            after = Add (one, t)
            column = Slice (x, t, after, axis)
            y = Mul (x, column)
        }
    """)
    with tw.compile(m, threads=1, cache=False) as model:
        for t in (0, 3, 5, -2):
            np.testing.assert_array_equal(model(X, np.array([t], np.int32)), X * X[:, [t]])
        with pytest.raises(ExecutionError, match="outside the tensor"):
            model(X, np.array([6], np.int32))


def test_a_column_at_every_step_of_a_loop() -> None:
    m = parsed("""
        g (float[n, m] x, int64 steps) => (float[] y) {
            true = Constant <value = bool {1}> ()
            zero = Constant <value = float[1] {0}> ()
            first = Constant <value = int64[1] {0}> ()
            one = Constant <value = int64[1] {1}> ()
            y = Loop <body = b (int64 i, bool c, float[p] s) => (bool going, float[p] more) {
                going = Identity (c)
                t = Unsqueeze (i, first)
                after = Add (t, one)
                column = Slice (x, t, after, one)
                total = ReduceSum <keepdims = 0> (column)
                more = Add (s, total)
            }> (steps, true, zero)
        }
    """)
    with tw.compile(m, threads=1, cache=False) as model:
        for steps in (0, 2, 6):
            np.testing.assert_allclose(model(X, np.array(steps)), [X[:, :steps].sum()])


def test_the_greatest_of_a_number_that_is_an_input() -> None:
    m = parsed("""
        g (float[n, m] x, int64[1] k) => (float[] y, int64[] places) {
            y, places = TopK (x, k)
        }
    """)
    with tw.compile(m, threads=1, cache=False) as model:
        assert isinstance(model, Executable)
        for k in (0, 1, 6):
            y, places = model(X, np.array([k]))
            np.testing.assert_array_equal(y, X[:, ::-1][:, :k])
            assert places.shape == (4, k)
        with pytest.raises(ExecutionError):
            model(X, np.array([7]))


def test_parts_whose_sizes_are_inputs() -> None:
    m = parsed("""
        g (float[n, m] x, int64[2] sizes) => (float[] a, float[] b) {
            a, b = Split <axis = 1> (x, sizes)
        }
    """)
    with tw.compile(m, threads=1, cache=False) as model:
        assert isinstance(model, Executable)
        for first in (0, 2, 6):
            a, b = model(X, np.array([first, 6 - first]))
            np.testing.assert_array_equal(a, X[:, :first])
            np.testing.assert_array_equal(b, X[:, first:])
        for wrong in ([2, 2], [-1, 7], [7, -1]):
            with pytest.raises(ExecutionError):
                model(X, np.array(wrong))


@for_each(
    "text",
    [
        "g (float[n, m] x, int64[2147483648] k) => (float[] y, int64[] i) { y, i = TopK (x, k) }",
        "g (float[n, m] x, int64[3] k) => (float[] y) { y = Slice (x, k, k) }",
        "g (float[n, m] x, int64[99999999] k) => (float[] y, float[] z) { y, z = Split (x, k) }",
    ],
)
def test_more_numbers_than_can_be_meant(text: str) -> None:
    with pytest.raises(FrontendError, match="are the most that fit"):
        tw.compile(parsed(text), cache=False)
