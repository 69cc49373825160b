from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, noted
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.passes.fuse import fuse
from tilewright.passes.precision.bf16_attention import bf16_attention
from tilewright.target.registry import CPUS

AMX = CPUS["sapphirerapids"]


def _attention(queries: object, keys: object, size: int, right: int = -1, heads: int = 2) -> Graph:
    g = GraphBuilder("f")
    shapes = ((heads, queries, size), (heads, keys, size), (heads, keys, size))
    operands = [g.input(n, tensor(F32, *s)) for n, s in zip("qkv", shapes, strict=True)]  # type: ignore[arg-type]
    return g.graph(
        g.add(
            "fused_attention", *operands, attrs=FusedAttentionAttrs(scale=0.2, window_right=right)
        )
    )


def _by_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray, right: int) -> np.ndarray:
    scores = 0.2 * q.astype("f8") @ k.astype("f8").transpose(0, 2, 1)
    if right >= 0:
        hidden = np.arange(k.shape[1]) > np.arange(q.shape[1])[:, None] + right
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "right"),
    [
        (2, 40, 45, -1),
        pytest.param(1, 128, 128, 0, marks=pytest.mark.slow),
        pytest.param(2, 16, 200, -1, marks=pytest.mark.slow),
    ],
)
def test_it_gives_what_it_gave(heads: int, queries: int, keys: int, right: int) -> None:
    graph = _attention(queries, keys, 32, right, heads)
    after, (decision,) = noted(bf16_attention, graph, AMX, "bf16")
    verify_graph(after)
    assert decision.precision == "bf16"
    inputs = random_inputs(graph, {})
    expected = _by_numpy(*(inputs[name] for name in "qkv"), right)
    found = run_graph(after, inputs, {})[after.outputs[0]]
    np.testing.assert_allclose(found, expected, atol=2e-2)
    with compile(fuse(after, ON_CPU), cache=False, threads=2) as model:
        native = model.run(inputs)[graph.outputs[0]]
    np.testing.assert_allclose(native, found, atol=1e-2)


@for_each(
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
    after, (decision,) = noted(bf16_attention, graph, CPUS[machine], "bf16")
    assert after is graph
    assert decision.precision == "f32"
    assert reason in decision.reason
