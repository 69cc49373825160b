from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, F32, F64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.control.conditional import IfAttrs, branch_dims, dynamic_dim_names
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types

N = Var("N")
X = tensor(F32, N, 3)


def branch(*ops: str, type: TensorType = X, outputs: int = 1) -> Graph:
    """A graph of one input that applies operators in turn; `twice` joins two copies."""
    g = GraphBuilder("branch")
    y = g.input("x", type)
    for op in ops:
        twice = op == "twice"
        y = (
            g.add("concat", y, y, attrs=make_attrs("concat", {"axis": 0}))
            if twice
            else g.add(op, y)
        )
    return g.graph(*(y,) * outputs)


def conditional(then: Graph, other: Graph, condition=None) -> GraphBuilder:
    g = GraphBuilder("f")
    x = g.input("x", X)
    c = "" if condition is not None else g.input("c", tensor(BOOL))
    late = () if condition is not None else dynamic_dim_names((then, other), lambda: "late")
    g.add_control("if", [c, x], (then, other), IfAttrs(condition, late), ["y"])
    return g


def test_branches_of_one_type() -> None:
    graph = conditional(branch("exp"), branch("neg")).graph("y")
    assert graph.types["y"] == X
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for truth, expected in ((True, np.exp(x)), (False, -x)):
        found = run_graph(graph, {"x": x, "c": np.array(truth)})["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_late_size_has_a_name() -> None:
    g = conditional(branch("twice"), branch("neg"))
    y = g.add("exp", "y")
    graph = g.graph(y)
    (n, _) = graph.nodes
    assert g.type(y) == tensor(F32, Var("late"), 3)
    assert branch_dims(n.attrs, n.regions) == {"late": (N * 2, N)}
    x = np.ones((2, 3), np.float32)
    assert run_graph(graph, {"x": x, "c": np.array(True)})[y].shape == (4, 3)
    assert run_graph(graph, {"x": x, "c": np.array(False)})[y].shape == (2, 3)


def test_a_condition_over_sizes_chooses_the_size() -> None:
    graph = conditional(branch("twice"), branch("neg"), N.eq(1)).graph("y")
    rows = graph.tensor_type("y").shape[0]
    assert rows is simplify(select(N.eq(1), N * 2, N))
    for n, expected in ((1, 2), (3, 3)):
        x = np.ones((n, 3), np.float32)
        assert run_graph(graph, {"x": x})["y"].shape == (expected, 3)


def test_text_and_verifier() -> None:
    for condition in (None, N.eq(1)):
        graph = conditional(branch("twice"), branch("neg"), condition).graph("y")
        verify_graph(graph)
        check_types(graph)
        text = print_graph(graph)
        back = parse_graph(text, make_attrs)
        assert print_graph(back) == text
        check_types(back)


def test_a_failing_check_of_the_branch_that_is_taken() -> None:
    g = GraphBuilder("branch")
    g.add_check(g.type(g.input("x", X)).shape[0].eq(2), "two rows, please")
    picky = g.graph(g.add("exp", "x"))
    graph = conditional(picky, branch("neg")).graph("y")
    x = np.ones((3, 3), np.float32)
    assert run_graph(graph, {"x": x, "c": np.array(False)})["y"].shape == (3, 3)
    with pytest.raises(ExecutionError, match="two rows"):
        run_graph(graph, {"x": x, "c": np.array(True)})


WRONG = [
    ((branch("exp"),), tensor(BOOL), "1 nested graphs"),
    ((branch("exp"), branch("neg", outputs=2)), tensor(BOOL), "1 and 2 results"),
    ((branch("exp"), branch("neg", type=tensor(F64, N, 3))), tensor(BOOL), "f32.* and f64"),
    ((branch("exp"), branch("neg", type=tensor(F32, N))), tensor(BOOL), "one rank"),
    ((branch("exp"), branch("neg")), tensor(F32), "condition is f32"),
    ((branch("exp"), branch("neg")), tensor(BOOL, 2), "condition is bool"),
    ((branch("exp"), branch("twice")), tensor(BOOL), "sizes N and N \\* 2"),
]


@for_each(("regions", "condition", "message"), WRONG, ids=[w[2] for w in WRONG])
def test_malformed(regions, condition, message) -> None:
    g = GraphBuilder("f")
    x, c = g.input("x", X), g.input("c", condition)
    with pytest.raises(TypeCheckError, match=message):
        g.add_control("if", [c, x], regions, IfAttrs())


def test_one_condition() -> None:
    g = GraphBuilder("f")
    x, c = g.input("x", X), g.input("c", tensor(BOOL))
    regions = branch("exp"), branch("neg")
    for given, attrs in ((c, IfAttrs(N.eq(const(1)))), ("", IfAttrs())):
        with pytest.raises(TypeCheckError, match="one condition"):
            g.add_control("if", [given, x], regions, attrs)
    with pytest.raises(TypeCheckError, match="takes 1 of 2"):
        g.add_control("if", [c, x, x], regions, IfAttrs())
    with pytest.raises(TypeCheckError, match="no nested graphs"):
        g.add("if", c)
