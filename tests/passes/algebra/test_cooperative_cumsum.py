from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BF16, F16, F32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.cooperative_cumsum import (
    MAX_ELEMENTS,
    cooperative_cumsum,
    plan_cumsum,
)


def _graph(shape: tuple[int | Expr, ...], attrs: ScanAttrs, dtype: DType = F32) -> Graph:
    g = GraphBuilder("f")
    return g.graph(g.add("cumsum", g.input("x", tensor(dtype, *shape)), attrs=attrs))


@for_each("attrs", [ScanAttrs(-1), ScanAttrs(-1, True), ScanAttrs(-1, False, True)])
@for_each(
    ("shape", "dtype"),
    [((3, 100), F32), ((2, 3, 7), I64), ((51,), F32), ((2, 999), BF16), ((4, 2), F32)],
)
def test_rows_are_scanned_together(shape: tuple[int, ...], dtype: DType, attrs: ScanAttrs) -> None:
    graph = _graph(shape, attrs, dtype)
    after = cooperative_cumsum(graph, ON_GPU)
    verify_graph(after)
    check_types(after)
    assert "cumsum_rows" in after.ops
    assert "cumsum" not in after.ops
    x = np.random.default_rng(3).integers(-9, 9, shape).astype(dtype.numpy)
    found = run_graph(after, {"x": x})[after.outputs[0]]
    wide = x.astype(np.float64)
    wide = wide[..., ::-1] if attrs.reverse else wide
    right = np.cumsum(wide, -1) - (wide if attrs.exclusive else 0)
    right = right[..., ::-1] if attrs.reverse else right
    right = right.astype(dtype.numpy).astype(np.float64)  # rounded once
    np.testing.assert_array_equal(found.astype(np.float64), right)


def test_rows_of_unknown_length() -> None:
    graph = _graph((Var("M"), Var("N")), ScanAttrs(1))
    after = cooperative_cumsum(graph, ON_GPU)
    for shape in ((2, 600), (1, 1), (3, 1030)):
        x = np.ones(shape, np.float32)
        found = run_graph(after, {"x": x})[after.outputs[0]]
        np.testing.assert_array_equal(found, np.cumsum(x, 1))


@for_each(
    "graph",
    [
        _graph((2, 60, 3), ScanAttrs(1)),
        _graph((2, 1), ScanAttrs(1)),
        _graph((0, 60), ScanAttrs(1)),
        _graph((2, 0), ScanAttrs(1)),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert cooperative_cumsum(graph, ON_GPU) is graph


@for_each("rows", [1, 150, 3000, 65536])
@for_each("dtype", [F16, F32, I64])
def test_plans_fit_a_block(rows: int, dtype: DType) -> None:
    for length in (2, 7, 8, 16, 112, 131, 2592, 5683, 20001, 32768):
        plan = plan_cumsum(const(rows), const(length), dtype, H200, ScanAttrs(1))
        assert plan is not None
        assert length % plan.width == 0
        assert plan.lanes * plan.rows <= H200.threads_per_block
        assert plan.rows == 1 or plan.lanes <= H200.warp_size
        assert plan.steps * plan.width <= MAX_ELEMENTS
