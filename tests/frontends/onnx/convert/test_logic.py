"""Attributes of logic operators."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.onnx_ops import run_onnx
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.importer import import_onnx


def test_shift() -> None:
    x, n = np.array([1, 12], np.uint32), np.array([3, 2], np.uint32)
    np.testing.assert_array_equal(run_onnx("BitShift", x, n, direction="LEFT")[0], [8, 48])
    np.testing.assert_array_equal(run_onnx("BitShift", x, n, direction="RIGHT")[0], [0, 3])
    with pytest.raises(FrontendError, match="direction is 'UP'"):
        run_onnx("BitShift", x, n, direction="UP")


def test_infinities() -> None:
    x = np.array([np.inf, -np.inf, 1, np.nan], np.float32)
    np.testing.assert_array_equal(run_onnx("IsInf", x)[0], [True, True, False, False])
    found = run_onnx("IsInf", x, detect_positive=0)[0]
    np.testing.assert_array_equal(found, [False, True, False, False])


@for_each(
    ("op", "reference"),
    [("Equal", np.equal), ("LessOrEqual", np.less_equal), ("Greater", np.greater)],
)
def test_comparison(op: str, reference: np.ufunc) -> None:
    a, b = np.array([1, 2, 3]), np.array([[2], [3]])
    np.testing.assert_array_equal(run_onnx(op, a, b)[0], reference(a, b))


@for_each(
    ("bound", "known"),
    [("16777215.0", True), ("2.5", False), ("nan", False), ("inf", False), ("99999999.0", True)],
)
def test_sizes_that_are_compared_as_floats(bound: str, known: bool) -> None:
    model = parsed("""
    g (float[n] x) => (bool y) {
        size = Size (x)
        float = Cast <to = 1> (size)
        bound = Constant <value = float {2.5}> ()
        y = Less (float, bound)
    }""")
    model.graph.node[2].attribute[0].t.ClearField("float_data")
    model.graph.node[2].attribute[0].t.raw_data = np.float32(bound).tobytes()
    graph = import_onnx(model)
    (compared,) = [n for n in graph.nodes if n.op == "less"]
    assert graph.tensor_type(compared.inputs[0]).dtype.is_integer == known
    assert bool(graph.checks) == (bound == "99999999.0")
