from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attend_problem import AttendAttrs
from tilewright.ops.build import GraphBuilder
from tilewright.ops.evaluate import run_graph
from tilewright.passes.fuse import fuse
from tilewright.passes.round_attention import round_attention
from tilewright.target.cpu import NAMED

AMX = NAMED["sapphirerapids"]


def _attention(queries: object, keys: object, size: int, right: int = -1) -> Graph:
    g = GraphBuilder("f")
    shapes = ((2, queries, size), (2, keys, size), (2, keys, size))
    operands = [g.input(n, tensor(F32, *s)) for n, s in zip("qkv", shapes, strict=True)]  # type: ignore[arg-type]
    return g.graph(g.add("attend", *operands, attrs=AttendAttrs(scale=0.2, right=right)))


@pytest.mark.parametrize(("queries", "keys", "right"), [(40, 45, -1), (128, 128, 0), (16, 200, -1)])
def test_it_gives_what_it_gave(queries: int, keys: int, right: int) -> None:
    graph = _attention(queries, keys, 32, right)
    after, (decision,) = round_attention(graph, AMX)
    verify_graph(after)
    assert decision.precision == "bf16"
    inputs = random_inputs(graph, {})
    expected = run_graph(graph, inputs, {})[graph.outputs[0]]
    found = run_graph(after, inputs, {})[after.outputs[0]]
    np.testing.assert_allclose(found, expected, atol=2e-2)
    with compile(fuse(after), cache=False, threads=2) as model:
        native = model.run(inputs)[graph.outputs[0]]
    np.testing.assert_allclose(native, found, atol=1e-2)


@pytest.mark.parametrize(
    ("graph", "machine", "reason"),
    [
        (_attention(64, 64, 64), "x86-64-v4", "no unit"),
        (_attention(Var("N"), 64, 64), "sapphirerapids", "known only when it runs"),
        (_attention(1, 64, 64), "sapphirerapids", "most of a tile empty"),
        (_attention(64, 600, 64), "sapphirerapids", "walked in blocks"),
        (_attention(300, 300, 64, 0), "sapphirerapids", "walked in blocks"),
        (_attention(64, 64, 40), "sapphirerapids", "whole tiles"),
    ],
)
def test_what_stays_has_a_reason(graph: Graph, machine: str, reason: str) -> None:
    after, (decision,) = round_attention(graph, NAMED[machine])
    assert after is graph
    assert decision.precision == "f32"
    assert reason in decision.reason
