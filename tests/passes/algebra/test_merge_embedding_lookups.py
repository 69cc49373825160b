from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32, I8, I64, DType
from tilewright.core.errors import ExecutionError
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.merge_embedding_lookups import merge_embedding_lookups
from tilewright.passes.canonicalize.dce import dce

BATCH = const(3)


def _tables(
    rows: Sequence[int],
    starts: Sequence[int],
    width: int = 1,
    dtype: DType = I64,
    batch: Expr = BATCH,
    given_back: bool = False,
) -> Graph:
    """Rows of some tables, each at a part of the indices, joined behind something else."""
    g, rng = GraphBuilder("tables"), np.random.default_rng(0)
    indices = g.input("i", tensor(dtype, batch, 7))
    parts = [g.add("relu", g.input("x", tensor(F32, batch, 1, 4)))]
    for count, start in zip(rows, starts, strict=True):
        attrs = SliceAttrs((const(0), const(start)), (batch, const(start + width)), (1, 1))
        table = g.constant(rng.standard_normal((count, 4), dtype=np.float32))
        taken = g.add("slice", indices, attrs=attrs)
        parts.append(g.add("gather", table, taken, attrs=GatherAttrs(0)))
    joined = g.add("concat", *parts, attrs=ConcatAttrs(1))
    return g.graph(joined, *parts[1:]) if given_back else g.graph(joined)


def _looked_up(graph: Graph, dtype: DType = I64) -> int:
    """How many look-ups are left, after checking that they are the same ones."""
    after = dce(merge_embedding_lookups(graph, ON_CPU), ON_CPU)
    verify_graph(after)
    check_types(after)
    i = np.random.default_rng(1).integers(-3, 3, (3, 7))  # the smallest table has 3 rows
    inputs = {"i": i.astype(dtype.numpy), "x": np.ones((3, 1, 4), np.float32)}
    (expected,) = run_graph(graph, inputs).values()
    (found,) = run_graph(after, inputs).values()
    np.testing.assert_array_equal(found, expected)
    (compiled,) = compile(graph, cache=False).run(inputs).values()
    np.testing.assert_array_equal(compiled, expected)
    return sum(n.op == "gather" for n in after.nodes)


@pytest.mark.parametrize("dtype", [I64, I8])
@pytest.mark.parametrize("batch", [BATCH, Var("N")])
def test_neighbours_are_looked_up_together(dtype: DType, batch: Expr) -> None:
    graph = _tables([5, 9, 120, 3], [1, 2, 3, 4], dtype=dtype, batch=batch)
    assert _looked_up(graph, dtype) == 1


@for_each(("column", "index", "rows"), [(1, 5, 5), (2, 9, 9), (2, -10, 9)])
def test_an_index_is_checked_against_its_own_table(column: int, index: int, rows: int) -> None:
    after = dce(merge_embedding_lookups(_tables([5, 9], [1, 2]), ON_CPU), ON_CPU)
    i = np.zeros((3, 7), np.int64)
    i[2, column] = index
    with pytest.raises(ExecutionError, match=f"index {index} is outside a dimension of {rows}"):
        run_graph(after, {"i": i, "x": np.ones((3, 1, 4), np.float32)})


def test_parts_of_several_columns() -> None:
    assert _looked_up(_tables([5, 9, 3], [1, 3, 5], width=2)) == 1


@pytest.mark.parametrize(("starts", "left"), [([0, 2, 4], 3), ([3, 2, 1], 3), ([0, 1, 4], 2)])
def test_parts_that_are_no_neighbours_stay_apart(starts: list[int], left: int) -> None:
    assert _looked_up(_tables([5, 9, 3], starts)) == left


def test_rows_that_are_needed_elsewhere_stay() -> None:
    graph = _tables([5, 9], [0, 1], given_back=True)
    assert merge_embedding_lookups(graph, ON_CPU) is graph
