from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import FALSE, TRUE, Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import Loc, TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.shape.assumptions import (
    assume,
    assumptions,
    data_dependent_dim,
    definition_order,
    divides,
    has_elements,
    same_shape,
    same_size,
    simpler,
)

N, M = Var("N"), Var("M")


def test_what_is_certain_is_not_noted() -> None:
    with assumptions() as found:
        assert same_size("f", N, N) is N
        assert same_size("f", N * 2, N + N) is not None
        assert same_size("f", N, N + 1) is None
        assert same_size("f", const(3), const(4)) is None
        assert assume(TRUE, "")
        assert not assume(FALSE, "")
    assert found == {}


def test_what_may_be_is_noted_once() -> None:
    with assumptions() as found:
        assert same_size("add", N, M) is N
        assert same_size("mul", N, M) is N
        assert same_shape("add", (N, const(4)), (const(8), const(4)))
        assert not same_shape("add", (N,), (N, N))
    assert len(found) == 2
    assert "add: sizes N and M differ" in found.values()


def test_outside_nothing_is_noted() -> None:
    with assumptions() as found:
        pass
    assert same_size("f", N, M) is N
    assert found == {}


def test_the_simpler_spelling() -> None:
    assert simpler(N, const(3)) is const(3)
    assert simpler((N + 15) // 16, M) is M
    assert simpler(N, M) is N


def test_graphs_carry_what_their_operators_assume() -> None:
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, N, 4)), g.input("y", tensor(F32, M, 4))
    z = g.add("add", x, y, loc=Loc("m.onnx", "Add_1"))
    g.add("mul", z, y)
    (check,) = g.graph(z).checks
    assert check.loc.node == "Add_1"
    assert "N and M differ" in check.message
    with pytest.raises(TypeCheckError, match="do not broadcast"):
        g.add("add", x, g.input("w", tensor(F32, M, 5)))


MISMATCHES = [
    ("matmul", [(2, N), (M, 3)], {}),
    ("concat", [(N, 2), (M, 2)], {"axis": 1}),
    ("expand", [(N,)], {"shape": (2, M)}),
    ("reshape", [(N, 6)], {"shape": (M, 4)}),
    ("einsum", [(2, N), (M, 3)], {"equation": "ij,jk->ik"}),
    (
        "conv",
        [(1, N, 8, 8), (4, 3, 1, 1)],
        {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)},
    ),
]


@for_each(("op", "shapes", "attrs"), MISMATCHES, ids=[m[0] for m in MISMATCHES])
def test_operators_take_sizes_that_may_fit(op: str, shapes: list, attrs: dict) -> None:
    g = GraphBuilder("f")
    inputs = [g.input(f"x{i}", tensor(F32, *shape)) for i, shape in enumerate(shapes)]
    y = g.add(op, *inputs, attrs=make_attrs(op, attrs))
    assert len(g.graph(y).checks) == 1


def test_when_a_size_is_known() -> None:
    first, second = Var(data_dependent_dim(0)), Var(data_dependent_dim(1))
    assert [definition_order(e) for e in (const(3), N * M, first, first + N, first * second)] == [
        0,
        0,
        1,
        1,
        2,
    ]


def test_a_multiple_is_assumed_only_where_it_may_not_be_one() -> None:
    with assumptions() as found:
        assert divides("f", 2, const(6))
        assert divides("f", 2, N * 4)
        assert not divides("f", 2, const(7))
        assert not divides("f", 0, N)
        assert found == {}
        assert divides("f", 2, N)
    assert list(found.values()) == ["f: 2 does not divide N"]


def test_elements_are_needed_unless_none_are_taken() -> None:
    with assumptions() as found:
        assert has_elements("gather", const(3))
        assert has_elements("gather", const(0), (N, const(0)))
        assert has_elements("resize", N, (const(4), N * 2))  # nothing is made of nothing
        assert not has_elements("gather", const(0), (const(2),))
    assert found == {}
    with assumptions() as found:
        assert has_elements("gather", N, (M,))
    ((condition, message),) = found.items()
    cases = [(n, m) for n in (0, 2) for m in (0, 2) if not evaluate(condition, {"N": n, "M": m})]
    assert cases == [(0, 2)]
    assert "size N" in message
