from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import LoweringError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.verify import verify_program
from tilewright.ir.types import tensor
from tilewright.lower.tensor_program import group_program
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph


def group() -> Graph:
    g = GraphBuilder("group")
    x, w = g.input("x", tensor(F32, 3, 4)), g.input("w", tensor(F32, 4, 5))
    scale = g.constant(np.array([[0.25]], "f4"))
    y = g.add("mul", g.add("matmul", x, w), scale)
    return g.graph(g.add("relu", y), y)


def test_a_group_means_its_operators() -> None:
    program = group_program(group())
    verify_program(program)
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((3, 4)), "w": rng.standard_normal((4, 5))}
    given = {k: v.astype("f4") for k, v in given.items()}
    expected = run_graph(group(), given)
    found = run_program(program, given, {})
    for name, output in zip(program.outputs, group().outputs, strict=True):
        np.testing.assert_allclose(found[name], expected[output], rtol=1e-6)


def test_scalar_constants_are_literals() -> None:
    program = group_program(group())
    assert [t.name for t in program.inputs] == ["x", "w"]
    assert "0.25" in "".join(str(s.body) for s in program.stages)


def test_an_absent_input_stays_absent() -> None:
    g = GraphBuilder("group")
    x = g.input("x", tensor(F32, 2, 3))
    low = g.constant(np.array(0.5, "f4"))
    program = group_program(g.graph(g.add("clip", x, low, "")))
    x = np.linspace(-1, 2, 6, dtype="f4").reshape(2, 3)
    found = run_program(program, {"x": x}, {})
    np.testing.assert_array_equal(found[program.outputs[0]], np.maximum(x, 0.5))


def test_an_operator_without_expressions_is_refused() -> None:
    g = GraphBuilder("group")
    x = g.input("x", tensor(I64, 3))
    y = g.add("cumsum", x, attrs=make_attrs("cumsum", {"axis": 0}))
    with pytest.raises(LoweringError, match=r"lower.no-expression.*cumsum"):
        group_program(g.graph(y))


def test_a_masked_read_of_a_scalar_constant_is_zero_outside() -> None:
    g = GraphBuilder("group")
    w = g.input("w", tensor(F32, 1, 1, 1))
    one = g.constant(np.ones((1, 1, 1), "f4"))
    attrs = make_attrs("conv", {"strides": [1], "pads": [1, 2], "dilations": [1]})
    program = group_program(g.graph(g.add("conv", one, w, attrs=attrs)))
    found = run_program(program, {"w": np.full((1, 1, 1), 3, "f4")}, {})
    np.testing.assert_array_equal(found[program.outputs[0]].ravel(), [0, 3, 0, 0])
