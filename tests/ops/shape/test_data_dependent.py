"""When data-dependent dimensions are known."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.shape.assumptions import data_dependent_dim
from tilewright.ops.shape.data_dependent import checks_by_node, data_dependent_dims
from tilewright.ops.tensor.creation import RangeAttrs

FIRST, SECOND, N = Var(data_dependent_dim(0)), Var(data_dependent_dim(1)), Var("N")


def graph() -> Graph:
    g = GraphBuilder("g")
    g.input("x", tensor(F32, N))
    for size in (FIRST, SECOND):
        count = g.input(f"n{size.name}", tensor(I64, 1))
        g.add("bind_dim", count, attrs=BindDimAttrs(size.name, N))
    g.add_check(N.eq(3), "N is not 3")
    g.add_check(FIRST.eq(SECOND), "two sizes differ")
    g.add_check(FIRST < N, "one is too large")
    return g.graph(g.add("range", attrs=RangeAttrs(FIRST * 0, FIRST * 0 + 1, FIRST)))


def test_checks_are_made_when_their_sizes_are_known() -> None:
    made = graph()
    assert [data_dependent_dims(n) for n in made.nodes] == [(FIRST.name,), (SECOND.name,), ()]
    found = [[c.message for c in checks] for checks in checks_by_node(made)]
    assert found == [["N is not 3"], ["one is too large"], ["two sizes differ"], []]


def test_they_are_made_when_interpreted() -> None:
    made = graph()
    x = np.zeros(3, np.float32)

    def run(*counts: int) -> list[int]:
        names = [v.name for v in made.inputs]
        given = dict(zip(names, [x, *(np.array([c]) for c in counts)], strict=True))
        (found,) = run_graph(made, given).values()
        return found.tolist()

    assert run(2, 2) == [0, 1]
    for counts, message in (((3, 3), "too large"), ((1, 2), "differ")):
        with pytest.raises(ExecutionError, match=message):
            run(*counts)
