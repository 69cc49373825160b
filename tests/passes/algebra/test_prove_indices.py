from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import ExecutionError
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Attrs, Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.indexing import GatherAttrs, GatherNdAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.passes.algebra.prove_indices import prove_indices

ATTRS: dict[str, Attrs] = {
    "gather": GatherAttrs(1),
    "gather_elements": GatherAttrs(1),
    "gather_nd": GatherNdAttrs(),
    "scatter_elements": ScatterElementsAttrs(1),
    "scatter_nd": ScatterNdAttrs(),
}


def _graph(op: str, *indices: list[int], columns: int | Var = 4) -> Graph:
    g = GraphBuilder("constant_indices")
    x = g.input("x", tensor(F32, 3, columns))
    numbers = np.array(indices)
    more = [g.constant(np.ones(len(numbers), np.float32))] if op == "scatter_nd" else []
    more += [g.constant(np.ones(numbers.shape, np.float32))] if op == "scatter_elements" else []
    return g.graph(g.add(op, x, g.constant(numbers), *more, attrs=ATTRS[op]))


def _modes(graph: Graph) -> list[str]:
    return [n.attrs.mode for n in prove_indices(graph, ON_CPU).nodes]


@for_each("op", ATTRS)
def test_constants_that_lie_inside_need_no_check(op: str) -> None:
    assert _modes(_graph(op, [2, 3], [-3, -4])) == ["clip"]


@for_each("op", ATTRS)
@for_each("wrong", [4, -5])
def test_one_that_lies_outside_is_reported_when_the_model_runs(op: str, wrong: int) -> None:
    graph = _graph(op, [2, wrong], [0, 0])
    assert _modes(graph) == ["raise"]
    with compile(graph, cache=False) as model, pytest.raises(ExecutionError, match="of 4"):
        model(np.zeros((3, 4), np.float32))


def test_a_symbolic_size_is_compared_when_the_model_runs() -> None:
    assert _modes(_graph("gather", [2, 3], columns=Var("N"))) == ["raise"]
