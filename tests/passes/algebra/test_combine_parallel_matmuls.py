from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import assert_same_results
from tilewright.arith.expr import Expr, Var
from tilewright.core.dtypes import BF16, F16, F32, F64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.algebra.combine_parallel_matmuls import (
    MAX_PRODUCTS,
    combine_parallel_matmuls,
)
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import PassContext
from tilewright.passes.fuse import fuse
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs
from tilewright.passes.memory.eliminate_concat import eliminate_concat
from tilewright.target.calibration.sm_90a import PARALLEL_MATMULS
from tilewright.target.gpu import GpuTarget, with_tf32
from tilewright.target.registry import resolve_gpu

TILE = PARALLEL_MATMULS.tile

H200 = resolve_gpu("cuda -arch=sm_90a")
# For which one small product is enough to do.
SMALL = replace(H200, sm_count=2)
N = Var("N")
DEPTH, COLUMNS, HEADS = 8, 64, 4
RNG = np.random.default_rng(3)
Bias = tuple[int, ...] | None


class _Maker(GraphBuilder):
    """Products of one value with constant weights."""

    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)

    def data(self, *shape: int, dtype: DType = F32) -> str:
        return self.constant(RNG.standard_normal(shape).astype(dtype.numpy))

    def layer(self, x: str, bias: Bias = (COLUMNS,), columns: int = COLUMNS) -> str:
        dtype = self.type(x).dtype
        y = self("matmul", x, self.data(DEPTH, columns, dtype=dtype))
        return y if bias is None else self("add", y, self.data(*bias, dtype=dtype))

    def heads(self, y: str) -> str:
        """The heads of queries, keys or values: a view."""
        return self("reshape", y, shape=(*self.type(y).shape[:-1], HEADS, COLUMNS // HEADS))

    def read(self, y: str) -> str:
        """Something that a kernel makes of those."""
        return self("softmax", self.heads(y), axis=-1)


def start(*rows: Expr | int, dtype: DType = F32) -> tuple[_Maker, str]:
    g = _Maker("f")
    return g, g.input("x", tensor(dtype, *(rows or (6,)), DEPTH))


def stacked(graph: Graph) -> Graph:
    """The graph with its stacks, checked to mean the same."""
    after = dce(combine_parallel_matmuls(graph, PassContext(SMALL)), ON_CPU)
    assert_same_results(graph, after, rtol=1e-6)
    assert combine_parallel_matmuls(after, PassContext(SMALL)) is after
    return after


def ops(graph: Graph, op: str) -> list[list[str]]:
    """The shapes that an operator gives, each as one would write it."""
    return [[str(d) for d in n.type.shape] for n in graph.nodes if n.op == op]


def attention(g: _Maker, x: str, *biases: Bias) -> Graph:
    """Softmax of queries, times keys, and values."""
    q, k, v = (g.heads(g.layer(x, bias)) for bias in biases)
    turned = [g("transpose", y, perm=(0, 2, 1, 3)) for y in (q, v)]
    keys = g("transpose", k, perm=(0, 2, 3, 1))
    scores = g("softmax", g("matmul", turned[0], keys), axis=-1)
    return g.graph(g("matmul", scores, turned[1]))


@for_each(
    "biases",
    [((64,), (64,), (64,)), ((64,), None, (1, 64)), ((), (1,), (1, 1, 64)), (None, None, None)],
)
def test_queries_keys_and_values_are_one_product(biases: tuple[Bias, ...]) -> None:
    g, x = start(2, 6)
    after = stacked(attention(g, x, *biases))
    assert len(ops(after, "matmul")) == 3
    assert ops(after, "matmul")[0] == ["3", "12", "64"]
    assert len(ops(after, "add")) == (any(b is not None for b in biases))


@for_each("dtype", [F16, BF16])
def test_types(dtype: DType) -> None:
    g, x = start(70, dtype=dtype)
    graph = g.graph(*(g.read(g.layer(x)) for _ in range(2)))
    after = dce(combine_parallel_matmuls(graph, PassContext(SMALL)), ON_CPU)
    assert_same_results(graph, after)
    assert ops(after, "add") == [["2", "70", "64"]]


def test_nothing_is_copied() -> None:
    g, x = start(2, 6)
    graph = attention(g, x, (64,), (64,), (64,))
    after = eliminate_concat(copy_aliased_outputs(stacked(graph), ON_CPU), ON_CPU)
    assert len(ops(after, "slice_view")) == 3
    assert not ops(after, "slice")
    kernels = [n for n in fuse(after, ON_CPU).nodes if n.op == "fused"]
    assert len(kernels) == len([n for n in fuse(graph, ON_CPU).nodes if n.op == "fused"]) - 2


def test_a_stack_is_computed_where_its_first_part_was() -> None:
    g, x = start()
    one = g.read(g.layer(x))
    other = g("mul", g.heads(g.layer(x)), one)
    assert ops(stacked(g.graph(other)), "matmul") == [["2", "6", "64"]]


def test_what_depends_on_another_product_is_added_behind_the_stack() -> None:
    g, x = start()
    q, k, v = (g.layer(x, None) for _ in range(3))
    shifted = g("add", k, g("softmax", q, axis=-1))
    after = stacked(g.graph(shifted, g.read(v), g.read(q)))
    assert ops(after, "matmul") == [["3", "6", "64"]]
    assert ops(after, "add") == [["6", "64"]]


def test_a_product_that_follows_another_is_in_no_stack_with_it() -> None:
    g, x = start()
    weights = g.data(64, 64), g.data(64, 64)
    y = g("matmul", g.layer(x), weights[0])
    graph = g.graph(g.read(g("matmul", y, weights[1])))
    assert combine_parallel_matmuls(graph, PassContext(SMALL)) is graph


def test_one_epilogue_is_worth_a_launch_and_two_are_not() -> None:
    for scaled in range(4):
        g, x = start()
        values = [g.layer(x) for _ in range(3)]
        values[:scaled] = [g("mul", y, g.data()) for y in values[:scaled]]
        after = stacked(g.graph(*map(g.read, values)))
        assert len(ops(after, "matmul")) == (1 if scaled < 2 else 3)


def test_results_of_the_graph_are_in_no_stack() -> None:
    g, x = start()
    given = g.layer(x), g.heads(g.layer(x))
    graph = g.graph(*given, g.read(g.layer(x)), g.read(g.layer(x)))
    assert ops(stacked(graph), "matmul") == [["6", "64"], ["6", "64"], ["2", "6", "64"]]
    g, x = start()
    y = g("matmul", x, g.data(DEPTH, 64))
    graph = g.graph(y, g.read(g("add", y, g.data(64))), g.read(g.layer(x)))
    assert combine_parallel_matmuls(graph, PassContext(SMALL)) is graph


def test_many_are_cut_into_stacks() -> None:
    g, x = start()
    graph = g.graph(*(g.read(g.layer(x)) for _ in range(2 * MAX_PRODUCTS + 1)))
    shapes = ops(stacked(graph), "matmul")
    assert sorted(map(len, shapes)) == [2, 3, 3]
    assert [str(MAX_PRODUCTS), "6", "64"] in shapes


@for_each(
    ("rows", "dtype", "target", "pays"),
    [
        (1, F16, H200, False),
        (PARALLEL_MATMULS.min_rows - 1, F16, H200, False),
        (PARALLEL_MATMULS.min_rows, F16, H200, True),
        (132 * TILE - TILE, BF16, H200, True),
        (132 * TILE, BF16, H200, False),
        (64, F32, with_tf32(H200), True),
        (64, F32, H200, False),
        (TILE * 32, F32, H200, False),
        (TILE * 33, F32, H200, True),
        (TILE * 132, F32, H200, True),
        (TILE * 132 * PARALLEL_MATMULS.max_waves, F32, H200, False),
        (N, F32, H200, False),
        (N, F16, H200, False),
    ],
)
def test_what_pays(rows: Expr | int, dtype: DType, target: GpuTarget, pays: bool) -> None:
    g, x = start(rows, dtype=dtype)
    graph = g.graph(g.read(g.layer(x)), g.read(g.layer(x)))
    assert (combine_parallel_matmuls(graph, PassContext(target)) is not graph) == pays


def _shapes(g: _Maker, x: str) -> tuple[str, str]:
    return g.layer(x), g.layer(x, (128,), 128)


def _narrow(g: _Maker, x: str) -> tuple[str, str]:
    return g.layer(x, (4,), 4), g.layer(x, (4,), 4)


def _given(g: _Maker, x: str) -> tuple[str, str]:
    weights = (g.input(name, tensor(F32, DEPTH, COLUMNS)) for name in "vw")
    first, second = (g("matmul", x, w) for w in weights)
    return first, second


def _others(g: _Maker, x: str) -> tuple[str, str]:
    return g.layer(x), g.layer(g("relu", x))


def _constants(g: _Maker, x: str) -> tuple[str, str]:
    left = g.data(6, DEPTH)
    return g.layer(left), g.layer(left)


def _wide(g: _Maker, x: str) -> tuple[str, str]:
    double = g("cast", x, to=F64)
    return g.layer(double), g.layer(double)


def _batches(g: _Maker, x: str) -> tuple[str, str]:
    first, second = (g("matmul", x, g.data(2, DEPTH, COLUMNS)) for _ in range(2))
    return first, second


@for_each("make", [_shapes, _narrow, _given, _others, _constants, _wide, _batches])
def test_what_is_not_stacked(make) -> None:
    g, x = start()
    graph = g.graph(*(g("softmax", y, axis=-1) for y in make(g, x)))
    assert combine_parallel_matmuls(graph, PassContext(SMALL)) is graph
