from __future__ import annotations

import numpy as np

from tests.ops.run_op import exprs
from tilewright.core.dtypes import C128, F64, I32
from tilewright.frontends.torch.complex_value import (
    interleaved,
    interleaved_type,
    parts,
    real_dtype,
    real_type,
)
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph


def test_parts_and_back() -> None:
    g = GraphBuilder("pairs")
    x = g.input("x", interleaved_type(TensorType(C128, exprs("N", 3))))
    both = parts(g, x)
    graph = g.graph(both.re, both.im, interleaved(g, both))
    for rows in (0, 4):
        given = np.random.default_rng(0).standard_normal((rows, 3, 2))
        found = run_graph(graph, {"x": given})
        np.testing.assert_array_equal(found[both.re], given[..., 0])
        np.testing.assert_array_equal(found[both.im], given[..., 1])
        np.testing.assert_array_equal(found[graph.outputs[2]], given)


def test_types() -> None:
    assert real_type(TensorType(C128, exprs(2))) == TensorType(F64, exprs(2))
    assert real_dtype(I32) == I32
