from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tests.schedule.builtin.scheduled import kinds
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs


def _lstm(time: object, batch: object, units: int) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, time, batch, 1, 4, units))
    r = g.input("r", tensor(F32, units, 4, units))
    attrs = StepsAttrs(("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3)
    return g.graph(*g.add_many("lstm_steps", x, r, attrs=attrs))


@pytest.mark.parametrize("batch", [1, 3, Var("B")])
def test_steps_keep_their_meaning(batch: object) -> None:
    assert check(_lstm(3, batch, 5), {"B": 2}) == ["opaque"]


def test_steps_run_in_one_block_of_threads() -> None:
    (result,) = scheduled(_lstm(3, 2, 8))
    assert "grid" not in kinds(result.func)
    assert kinds(result.func)["thread"]


@for_each("shape", [(8, 1, 1), (8, 3, 1)])
def test_updates_of_one_element_have_one_thread(shape: tuple[int, ...]) -> None:
    g = GraphBuilder("f")
    x, u = g.input("x", tensor(F32, *shape)), g.input("u", tensor(F32, 6, *shape[1:]))
    i = g.constant(np.arange(6).reshape(6, 1, 1).repeat(shape[1], 1))
    graph = g.graph(g.add("scatter_elements", x, i, u, attrs=ScatterElementsAttrs(0)))
    assert check(graph, {}) == ["opaque"]
