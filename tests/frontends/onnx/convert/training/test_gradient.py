"""Gradients of ONNX graphs against differences; `tests/autodiff` goes through every rule."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ops.interpret import run_graph

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>\n'
RNG = np.random.default_rng(6)
A = RNG.uniform(0.2, 0.9, (3, 4))
B = RNG.uniform(1.2, 1.9, (1, 4))


def model(body: str, given: str = "a, b", xs: str = '"a", "b"', more: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""{HEAD}
        g (double[n, 4] a, double[1, 4] b {more}) => (double[] y, double[] da, double[] db) {{
            {body}
            da, db = ai.onnx.preview.training.Gradient <xs = [{xs}], y = "y"> ({given})
        }}
    """)


def run(m: onnx.ModelProto, *arrays: np.ndarray) -> list[np.ndarray]:
    graph = import_onnx(m)
    names = [v.name for v in graph.inputs]
    return list(run_graph(graph, dict(zip(names, arrays, strict=True))).values())


def differences(m: onnx.ModelProto, arrays: list[np.ndarray], which: int) -> np.ndarray:
    """How the sum of `y` changes with each element of an input."""
    found, step = np.zeros_like(arrays[which]), 1e-5
    for place in np.ndindex(found.shape):
        sides = []
        for sign in (1, -1):
            moved = [x.copy() for x in arrays]
            moved[which][place] += sign * step
            sides.append(run(m, *moved)[0].sum())
        found[place] = (sides[0] - sides[1]) / (2 * step)
    return found


BODIES = [
    "s = Div (a, b) y = Pow (s, b)",
    "s = Mul (a, b) t = ReduceMean <keepdims = 0> (s) y = Mul (t, b)",
    "t = Transpose <perm = [1, 0]> (b) y = MatMul (a, t)",
]


@pytest.mark.parametrize("body", BODIES)
def test_against_differences(body: str) -> None:
    m = model(body)
    _, da, db = run(m, A, B)
    np.testing.assert_allclose(da, differences(m, [A, B], 0), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(db, differences(m, [A, B], 1), rtol=1e-6, atol=1e-8)


def test_at_other_values() -> None:
    m = model("s = Exp (a) y = Mul (s, b)", "c, b", more=", double[n, 4] c")
    c = RNG.uniform(0, 1, A.shape)
    y, da, db = run(m, A, B, c)
    np.testing.assert_allclose(y, np.exp(A) * B)
    np.testing.assert_allclose(da, np.exp(c) * B)
    np.testing.assert_allclose(db, np.exp(c).sum(0, keepdims=True))


def test_what_does_not_matter() -> None:
    _, da, db = run(model("y = Exp (a)"), A, B)
    np.testing.assert_allclose(da, np.exp(A))
    np.testing.assert_array_equal(db, np.zeros_like(B))


ROI = """
    z = Constant <value_ints = [0]> () u = Unsqueeze (a, z) v = Unsqueeze (u, z)
    r = Constant <value = double[1,4] {0, 0, 2, 2}> ()
    y = RoiAlign (v, r, z)
"""


def test_steps_have_no_slope() -> None:
    _, da, db = run(model("f = Floor (a) y = Add (f, b)"), A, B)
    np.testing.assert_array_equal(da, np.zeros_like(A))
    np.testing.assert_array_equal(db, np.full_like(B, len(A)))


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="the gradient of roi_align"):
        run(model(ROI), A, B)
    with pytest.raises(FrontendError, match="'z' is not computed"):
        run(model("y = Exp (a)", xs='"a", "z"'), A, B)
