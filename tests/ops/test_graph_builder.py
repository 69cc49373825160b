"""Building graphs: types, names, known values, located errors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import FALSE, TRUE, Var, const
from tilewright.core.config import override
from tilewright.core.dtypes import F32
from tilewright.core.errors import Loc, TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import KNOWN_LIMIT, GraphBuilder, known_integers
from tilewright.ops.tensor.creation import FullAttrs


def test_names_are_kept_and_made_unique() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, 2))
    assert g.add("relu", x, name="x") == "x_1"
    assert g.add("relu", x, name="y") == "y"
    assert g.add("relu", x, name="y") == "y_1"
    graph = g.graph("y")
    assert [n.name for n in graph.nodes] == ["x_1", "y", "y_1"]


def test_types_follow_and_errors_are_located() -> None:
    g = GraphBuilder("g", Loc("m.onnx"))
    x = g.input("x", tensor(F32, Var("n"), 3))
    assert g.type(g.add("add", x, x)) == tensor(F32, Var("n"), 3)
    y = g.constant(np.ones(4, np.float32))
    with pytest.raises(TypeCheckError) as caught:
        g.add("add", x, y, loc=Loc("m.onnx", "here"))
    assert caught.value.loc.node == "here"
    with pytest.raises(TypeCheckError) as caught:
        g.add("add", x, y)
    assert caught.value.loc == Loc("m.onnx")


def test_constants_are_kept_by_reference_and_known_if_short() -> None:
    g = GraphBuilder("g")
    data = np.array([[1, 2]])
    k = g.constant(data)
    assert g.constant_data(k) is data
    assert g.symbolic_value(k).tolist() == [[const(1), const(2)]]
    assert g.symbolic_value(g.constant(np.array([True, False]))).tolist() == [TRUE, FALSE]
    assert g.symbolic_value(g.constant(np.arange(KNOWN_LIMIT + 1))) is None
    assert g.symbolic_value(g.constant(np.ones(2))) is None
    assert g.constant_data("nothing") is None


def test_known_values_pass_through_rules_only() -> None:
    g = GraphBuilder("g")
    k = g.constant(np.array([4, 6]))
    x = g.input("x", tensor(g.type(k).dtype, 2))
    assert known_integers(g.symbolic_value(g.add("mul", k, k))) == [16, 36]
    assert g.symbolic_value(g.add("mul", k, x)) is None
    assert g.symbolic_value(g.add("sign", k)) is None


def test_known_integers_are_all_or_nothing() -> None:
    values = np.empty(2, dtype=object)
    values[:] = [const(1), Var("n")]
    assert known_integers(values) is None
    assert known_integers(values[:1]) == [1]


@for_each("shape", [(1 << 62, 4), (1 << 40, 1 << 40, 0), (1,) * 65])
def test_no_tensor_is_larger_than_a_machine(shape: tuple[int, ...]) -> None:
    g = GraphBuilder("f")
    with pytest.raises(TypeCheckError) as caught:
        g.input("x", tensor(F32, *shape))
    assert caught.value.code == "tensor.extent"


def test_many_values_of_one_name_get_names_of_their_own() -> None:
    g = GraphBuilder("f")
    names = [g.input("x", tensor(F32, 1)) for _ in range(20_000)]
    assert names[:3] == ["x", "x_1", "x_2"]
    assert len(set(names)) == 20_000


def test_what_an_operator_is_defined_by_assumes_is_assumed_with_it() -> None:
    g = GraphBuilder("f")
    q = g.input("q", tensor(F32, 1, 3, 4, 8))
    k = g.input("k", tensor(F32, 2, 3, 4, 8))
    v = g.input("v", tensor(F32, Var("N"), 3, 4, 8))
    g.add_many("attention", q, k, v)
    assert [str(c.condition) for c in g.graph().checks] == ["N == 2"]


def test_shapes_that_may_not_broadcast_are_checked() -> None:
    g = GraphBuilder("f")
    n, m = Var("N"), Var("M")
    assert g.broadcast("expand", (n, const(1)), (m, const(4)))[1] is const(4)
    assert [str(c.condition) for c in g.graph().checks] == ["M == N"]
    with pytest.raises(TypeCheckError, match="3, 4 do not broadcast"):
        g.broadcast("expand", (const(3),), (const(4),))


def test_no_size_is_divided_by_one_that_may_be_0() -> None:
    g = GraphBuilder("f")
    n, m = Var("N"), Var("M")
    g.add_check((n // m * m).eq(n), "M does not divide N")
    assert [str(c.condition) for c in g.graph().checks] == ["M != 0", "N % M == 0"]


def test_a_tensor_may_not_be_larger_than_allowed() -> None:
    g = GraphBuilder("f")
    with override(memory_limit_gb=1), pytest.raises(TypeCheckError, match="TW_MEMORY_LIMIT_GB"):
        g.add("full", attrs=FullAttrs((const(10**9),), 0.0, F32))
    g.add("full", attrs=FullAttrs((const(10**9),), 0.0, F32))
