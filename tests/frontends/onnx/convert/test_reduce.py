"""Where the axes of a reduction come from."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import UnsupportedError

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def test_axes_before_and_since_they_are_inputs() -> None:
    expected = X.sum((0, 2), keepdims=True)
    old = run_onnx("ReduceSum", X, opset=11, axes=[0, -1])[0]
    new = run_onnx("ReduceSum", X, constants={"axes": np.array([0, 2])})[0]
    np.testing.assert_allclose(old, expected, rtol=1e-5)
    np.testing.assert_allclose(new, expected, rtol=1e-5)


@for_each("empty", [None, np.array([], np.int64)])
def test_no_axes_means_all_or_none(empty: np.ndarray | None) -> None:
    constants = {} if empty is None else {"axes": empty}
    total = run_onnx("ReduceSum", X, constants=constants, keepdims=0)[0]
    np.testing.assert_allclose(total, X.sum(), rtol=1e-5)
    same = run_onnx("ReduceSumSquare", X, constants=constants, noop_with_empty_axes=1)[0]
    np.testing.assert_allclose(same, X * X, rtol=1e-6)


def test_axes_must_be_known() -> None:
    with pytest.raises(UnsupportedError) as caught:
        run_onnx("ReduceSum", X, np.array([1]))
    assert caught.value.code == "onnx.data-dependent"
    assert caught.value.loc.node == "here"


def test_positions_and_running_sums() -> None:
    found = run_onnx("ArgMax", X, axis=-1, keepdims=0, select_last_index=1)[0]
    np.testing.assert_array_equal(found, X.argmax(-1))
    found = run_onnx("CumSum", X, constants={"axis": np.array(1)}, reverse=1)[0]
    np.testing.assert_allclose(found, X[:, ::-1].cumsum(1)[:, ::-1], rtol=1e-5)
