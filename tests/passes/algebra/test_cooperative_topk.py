from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BF16, F16, F32, F64, I32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.cooperative_topk import (
    MAX_COUNT,
    cooperative_topk,
    held_elements,
    part_length,
    plan_topk,
)


def _graph(
    shape: tuple[int | Expr, ...], k: int | Expr, axis: int, largest: bool, dtype: DType = F32
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *shape))
    wanted = k if isinstance(k, Expr) else const(k)
    return g.graph(*g.add_many("topk", x, attrs=TopKAttrs(wanted, axis, largest)))


@for_each("largest", [True, False])
@for_each(
    ("shape", "k", "axis", "dtype"),
    [
        ((3, 60), 5, 1, F32),
        ((60, 3), 60, 0, I64),
        ((2, 35, 3), 7, 1, BF16),
        ((100,), 1, 0, F16),
        ((2, 16385), 3, 1, F32),  # two parts
        ((1, 8200), 20, 1, F64),
    ],
)
def test_the_same_elements_in_the_same_order(
    shape: tuple[int, ...], k: int, axis: int, dtype: DType, largest: bool
) -> None:
    graph = _graph(shape, k, axis, largest, dtype)
    after = cooperative_topk(graph, ON_GPU)
    verify_graph(after)
    check_types(after)
    assert "topk_rows" in after.ops
    assert "topk" not in after.ops
    x = np.random.default_rng(3).integers(0, 900, shape).astype(dtype.numpy)
    if dtype.is_float:
        x.ravel()[[3, 30]] = np.nan
    expected, found = run_graph(graph, {"x": x}), run_graph(after, {"x": x})
    for old, new in zip(graph.outputs, after.outputs, strict=True):
        right = expected[old].astype(np.float64)
        np.testing.assert_array_equal(found[new].astype(np.float64), right)


def test_rows_of_unknown_number() -> None:
    graph = _graph((Var("M"), 40), 4, 1, True)
    after = cooperative_topk(graph, ON_GPU)
    for rows in (0, 1, 5):
        x = np.random.default_rng(3).standard_normal((rows, 40)).astype(np.float32)
        values = run_graph(after, {"x": x})[after.outputs[0]]
        np.testing.assert_array_equal(values, -np.sort(-x)[:, :4])


@for_each(
    "graph",
    [
        _graph((2, 6000), MAX_COUNT + 1, 1, True),
        _graph((2, Var("N")), 3, 1, True),
        _graph((2, 60), Var("K"), 1, True),
        _graph((2, 60), 0, 1, True),
        _graph((0, 60), 2, 1, True),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert cooperative_topk(graph, ON_GPU) is graph


@for_each("k", [1, 2, 25, 64, MAX_COUNT])
@for_each("rows", [1, 150, 3000, 65536])
@for_each("dtype", [F16, F32, I32])
def test_plans_fit_a_block(k: int, rows: int, dtype: DType) -> None:
    most = held_elements(H200, dtype, True)
    for length in (128, 129, 1000, 4097, 5683, 8192, 12001, most):
        if length > most:
            continue
        plan = plan_topk(k, const(rows), length, dtype, True, H200)
        assert plan.lanes * plan.steps * plan.width >= length
        assert length % plan.width == 0
        assert plan.lanes * plan.rows <= H200.threads_per_block
        assert plan.rows == 1 or plan.lanes <= H200.warp_size
        assert plan.steps * plan.width <= 16 * (2 if most == 16384 else 1)


@for_each("k", [1, MAX_COUNT])
def test_every_part_has_enough_elements(k: int) -> None:
    for length in (16385, 16384 * 2 + 1, 200001, 10**6 + 7):
        part = part_length(k, length, 16384, 8)
        assert part % 8 == 0
        assert part <= 16384
        assert length - (length - 1) // part * part >= k
