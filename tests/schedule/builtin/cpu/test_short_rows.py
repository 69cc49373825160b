from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Expr, Var
from tilewright.core.dtypes import F32, I8, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS

V4 = CPUS["x86-64-v4"]


def _reduced(op: str, *shape: Expr | int, dtype: DType = F32) -> Graph:
    g = GraphBuilder("f")
    attrs = make_attrs(op, {"axes": (len(shape) - 1,), "keepdims": False})
    return g.graph(g.add(op, g.input("x", tensor(dtype, *shape)), attrs=attrs))


@for_each("op", ["reduce_sum", "reduce_max", "reduce_mean"])
@for_each("shape", [(16, 2), (67, 9), (3, 40, 21), (33, 32)])
def test_meaning(op: str, shape: tuple[int, ...]) -> None:
    assert check(_reduced(op, *shape), {}, V4) == ["short_rows"]


@pytest.mark.parametrize("shape", [(40, 3), (2000, 7), (5, 333, 21), (4096, 16)])
def test_machine_code(shape: tuple[int, ...]) -> None:
    for op in ("reduce_sum", "reduce_max"):
        graph = _reduced(op, *shape)
        check_native(graph, random_inputs(graph)).close()


def test_nan_is_the_greatest() -> None:
    graph = _reduced("reduce_max", 50, 9)
    x = random_inputs(graph)["x"]
    x[3, 0] = x[7, 8] = np.nan
    check_native(graph, {"x": x}).close()


def test_columns_are_unrolled_over_vectors_of_rows() -> None:
    (result,) = scheduled(_reduced("reduce_max", 3200, 21), V4)
    assert kinds(result.func)["unroll"] == ["reduce_max.r0"]
    assert len(kinds(result.func)["parallel"]) == 1


@for_each(
    ("shape", "dtype"),
    [((8, 9), F32), ((64, 33), F32), ((Var("N"), 9), F32), ((640, 9), I8)],
)
def test_longer_fewer_or_unknown_rows_are_reduced_one_by_one(
    shape: tuple[Expr | int, ...], dtype: DType
) -> None:
    (result,) = scheduled(_reduced("reduce_max", *shape, dtype=dtype), V4)
    assert result.rule == "rowwise"
