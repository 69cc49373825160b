"""Subnormal weights of products become zeros, beside larger ones only."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F32, F64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.precision.flush_subnormals import flush_subnormals, flushed

SUBNORMAL = 1e-39
NORMAL = float(np.finfo(np.float32).tiny)


def _product(weights: np.ndarray, op: str = "matmul", dtype: DType = F32) -> Graph:
    g = GraphBuilder("g")
    x = g.input("x", tensor(dtype, 3, weights.shape[0]))
    return g.graph(g.add(op, x, g.constant(weights.astype(dtype.numpy), "w"), name="y"))


def test_subnormal_weights_become_zeros() -> None:
    weights = np.array([[0.5, SUBNORMAL], [-SUBNORMAL, NORMAL]], np.float32)
    graph = _product(weights)
    found = dce(flush_subnormals(graph, ON_CPU), ON_CPU)
    (constant,) = found.constants
    np.testing.assert_array_equal(constant.data, np.array([[0.5, 0], [0, NORMAL]], np.float32))
    x = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    (before,), (after,) = (run_graph(g, {"x": x}).values() for g in (graph, found))
    np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-37)


def test_products_share_the_copy_of_a_weight() -> None:
    g = GraphBuilder("g")
    x, w = g.input("x", tensor(F32, 2, 2)), g.constant(np.float32([[1, SUBNORMAL]] * 2), "w")
    once = g.add("matmul", x, w)
    found = flush_subnormals(g.graph(g.add("matmul", once, w)), ON_CPU)
    first, second = found.nodes
    assert first.inputs[1] == second.inputs[1] != "w"
    assert len(dce(found, ON_CPU).constants) == 1


@for_each(
    "data",
    [
        [0.5, 0.0, NORMAL],
        [SUBNORMAL, NORMAL, 1e-20],  # all tiny: products with large numbers would be lost
        [SUBNORMAL, np.nan],
        [],
    ],
    ids=str,
)
def test_other_weights_are_kept(data: list[float]) -> None:
    weights = np.array(data, np.float32)
    assert flushed(weights) is weights


def test_infinities_and_nan_stay_beside_what_is_flushed() -> None:
    weights = np.array([np.inf, SUBNORMAL, np.nan, -2.0], np.float32)
    np.testing.assert_array_equal(flushed(weights), np.array([np.inf, 0, np.nan, -2], np.float32))


def test_only_products_of_f32_are_changed() -> None:
    weights = np.array([[0.5, SUBNORMAL, 1.0]]).repeat(3, axis=0)
    for graph in (_product(weights, dtype=F64), _product(weights, "add")):
        assert flush_subnormals(graph, ON_CPU) is graph
