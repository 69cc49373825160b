from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import assert_same_results
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.algebra.split_matmuls import split_matmuls
from tilewright.passes.canonicalize.dce import dce

N = Var("N")
RNG = np.random.default_rng(9)


class Builder(GraphBuilder):
    """A product of an input with constant weights, and slices of it."""

    def product(self, bias: tuple[int, ...] | None = None) -> str:
        x = self.input("x", tensor(F32, N, 4))
        y = self.add("matmul", x, self.weights(4, 6))
        return y if bias is None else self.add("add", y, self.weights(*bias))

    def weights(self, *shape: int) -> str:
        return self.constant(RNG.standard_normal(shape).astype(np.float32))

    def columns(self, y: str, start: int, stop: int, rows: object = N, step: int = 1) -> str:
        values = {"starts": (0, start), "stops": (rows, stop), "steps": (1, step)}
        return self.add("slice", y, attrs=make_attrs("slice", values))


@for_each("bias", [None, (6,), (1, 6), (1,), ()])
def test_each_slice_becomes_a_product(bias):
    g = Builder("f")
    y = g.product(bias)
    graph = g.graph(g.columns(y, 0, 2), g.columns(y, 2, 5), g.columns(y, 5, 6))
    after = dce(split_matmuls(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-6)
    assert {n.op for n in after.nodes} == ({"matmul"} if bias is None else {"matmul", "add"})
    assert split_matmuls(after, ON_CPU) is after
    weights = [c.data for c in after.constants if c.data.shape[:1] == (4,)]
    assert [w.shape for w in weights] == [(4, 2), (4, 3), (4, 1)]
    assert all(w.base is not None for w in weights)  # views: nothing is copied


@for_each(
    "second",
    [
        lambda g, y: g.columns(y, 2, 6),  # overlaps
        lambda g, y: g.columns(y, 3, 6, step=2),
        lambda g, y: g.columns(y, 3, 6, rows=1),
        lambda g, y: g.add("relu", y),
        lambda g, y: y,
    ],
)
def test_other_readers_keep_it_whole(second):
    g = Builder("f")
    y = g.product((6,))
    graph = g.graph(g.columns(y, 0, 3), second(g, y))
    assert split_matmuls(graph, ON_CPU) is graph


def test_products_of_two_values_stay_whole():
    g = Builder("f")
    x, w = g.input("x", tensor(F32, N, 4)), g.input("w", tensor(F32, 4, 6))
    y = g.add("matmul", x, w)
    graph = g.graph(g.columns(y, 0, 3), g.columns(y, 3, 6))
    assert split_matmuls(graph, ON_CPU) is graph
