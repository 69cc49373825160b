from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.algebra.fold_scale_bias import fold_scale_bias
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.canonicalize.fold_constants import fold_constants

N = Var("N")
RNG = np.random.default_rng(5)
WINDOW = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}


class Builder(GraphBuilder):
    """A builder with short names for what the examples are made of."""

    def __call__(self, op: str, *inputs: str, **attrs: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, attrs))

    def weights(self, *shape: int) -> str:
        return self.constant(RNG.standard_normal(shape).astype(np.float32))

    def image(self, channels: int, layout: str) -> str:
        shape = (N, channels, 5, 4) if layout == "channels_first" else (N, 5, 4, channels)
        return self.input("x", tensor(F32, *shape))


def _folded(graph: Graph, *ops: str) -> Graph:
    after = dce(fold_scale_bias(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert tuple(n.op for n in after.nodes) == ops
    assert fold_scale_bias(after, ON_CPU) is after
    return after


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    assert_same_results(graph, fold_scale_bias(graph, ON_CPU), rtol=1e-5)


@for_each("shape", [(), (6,), (1, 6), (1, 1)])
@for_each("op", ["mul", "div"])
def test_a_product_takes_scale_and_offsets(op, shape):
    g = Builder("f")
    product = g("matmul", g.input("x", tensor(F32, N, 4)), g.weights(4, 6))
    y = g(op, g("add", product, g.weights(6)), g.weights(*shape))
    graph = g.graph(g("add", y, g.weights(1, 6)))
    _folded(graph, "matmul", "add")


@for_each("layout", ["channels_first", "channels_last"])
@for_each("groups", [1, 3])
def test_batch_norm_of_a_convolution(groups, layout):
    g = Builder("f")
    x = g.image(6, "channels_first")
    y = g("conv", x, g.weights(9, 6 // groups, 3, 3), **WINDOW, groups=groups)
    scale, bias, mean = (g.weights(9) for _ in range(3))
    variance = g.constant(RNG.random(9).astype(np.float32) + 0.1)
    graph = g.graph(g("batch_norm", y, scale, bias, mean, variance))
    graph = dce(fold_constants(decompose(graph, ON_CPU), ON_CPU), ON_CPU)
    _folded(graph, "conv", "add")


def test_channels_last():
    g = Builder("f")
    y = g(
        "conv", g.image(4, "channels_last"), g.weights(6, 4, 3, 3), **WINDOW, layout="channels_last"
    )
    y = g("add", g("mul", g.weights(1, 1, 1, 6), y), g.weights(6))
    _folded(g.graph(y), "conv", "add")


@for_each("shape", [(), (4,), (1, 4)])
def test_the_scale_of_an_input(shape):
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 4))
    y = g("matmul", g("mul", x, g.weights(*shape)), g.weights(4, 6))
    _folded(g.graph(y), "matmul")
    g = Builder("f")
    x = g("mul", g.image(4, "channels_first"), g.weights(4, 1, 1))
    _folded(g.graph(g("conv", x, g.weights(6, 4, 3, 3), **WINDOW)), "conv")


def test_numbers_pass_through_a_product_of_two_values():
    g = Builder("f")
    x, y = g.input("x", tensor(F32, N, 4)), g.input("y", tensor(F32, 5, 4))
    a = g("mul", x, g.weights())
    b = g("transpose", g("mul", g.weights(1, 1), y), perm=(1, 0))
    after = _folded(g.graph(g("matmul", a, b)), "transpose", "matmul", "mul")
    assert after.constants[0].data.shape == ()


def test_narrow_floats_are_scaled_where_they_were():
    g = Builder("f")
    x, y = g.input("x", tensor(F16, N, 4)), g.input("y", tensor(F16, 4, 5))
    scaled = g("mul", x, g.constant(np.float16([0.125])))
    graph = g.graph(g("matmul", scaled, y))
    assert fold_scale_bias(graph, ON_CPU) is graph


def test_what_others_read_is_left():
    g = Builder("f")
    w = g.weights(4, 6)
    x = g.input("x", tensor(F32, N, 4))
    product = g("matmul", x, w)
    outputs = [g("mul", product, g.weights(6)), product]
    graph = g.graph(*outputs)
    assert fold_scale_bias(graph, ON_CPU) is graph
    # Shared weights would have to be kept twice.
    outputs = [g("mul", g("matmul", x, w), g.weights(6)), g("matmul", g("exp", x), w)]
    graph = g.graph(*outputs)
    assert fold_scale_bias(graph, ON_CPU) is graph


@for_each("data", [np.ones((3, 6)), np.full(6, np.inf), np.ones((3, 1))])
def test_other_factors_are_left(data):
    g = Builder("f")
    product = g("matmul", g.input("x", tensor(F32, 3, 4)), g.weights(4, 6))
    graph = g.graph(g("mul", product, g.constant(data.astype(np.float32))))
    assert fold_scale_bias(graph, ON_CPU) is graph


def test_a_division_by_zero_is_left():
    g = Builder("f")
    product = g("matmul", g.input("x", tensor(F32, 3, 4)), g.weights(4, 2))
    graph = g.graph(g("div", product, g.constant(np.float32([0, 1]))))
    assert fold_scale_bias(graph, ON_CPU) is graph
