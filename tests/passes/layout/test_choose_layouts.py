from __future__ import annotations

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.layout.choose_layouts import choose_layouts
from tilewright.passes.layout.sink_transposes import sink_transpose
from tilewright.passes.rewriter import rewrite_graph


class _Maker(GraphBuilder):
    """A builder with fewer words: convolutions with random weights."""

    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)

    def conv(
        self, x: str, filters: int, kernel: int = 1, stride: int = 1, depthwise: bool = False
    ) -> str:
        t = self.type(x)
        channels, rank = int(str(t.shape[1])), t.rank - 2
        groups = channels if depthwise else 1
        shape = (filters, channels // groups, *([kernel] * rank))
        rng = np.random.default_rng(len(self.nodes))
        values = {
            "strides": (stride,) * rank,
            "pads": (kernel // 2,) * (2 * rank),
            "dilations": (1,) * rank,
            "groups": groups,
        }
        weights = self.constant(rng.standard_normal(shape).astype(np.float32))
        return self("conv", x, weights, **values)


def _check(graph: Graph) -> Graph:
    after = choose_layouts(graph, ON_CPU)
    verify_graph(after)
    check_types(after)
    inputs = random_inputs(graph)
    expected, found = run_graph(graph, inputs), run_graph(after, inputs)
    for old, new in zip(graph.outputs, after.outputs, strict=True):
        # sums of large numbers may come out small
        room = 1e-6 * float(np.abs(expected[old]).max())
        np.testing.assert_allclose(found[new], expected[old], rtol=1e-5, atol=room)
    return after


def _layouts(graph: Graph) -> list[str]:
    return [n.attrs.layout for n in graph.nodes if hasattr(n.attrs, "layout")]


@for_each("name", ["conv", "pointwise_conv", "depthwise", "max_pool", "average_pool"])
def test_kernels_keep_their_meaning(name: str) -> None:
    _check(KERNELS[name](5, 4, 6))


def test_a_pointwise_convolution_that_stands_alone_keeps_its_layout() -> None:
    g = _Maker("f")
    graph = g.graph(g("relu", g.conv(g.input("x", tensor(F32, 2, 16, 8, 8)), 24)))
    assert _check(graph) is graph


@for_each("rank", [1, 2, 3])
def test_wide_windows_get_channels_last(rank: int) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 8, *([5] * rank)))
    after = _check(g.graph(g.conv(x, 16, 3)))
    assert [n.op for n in after.nodes] == ["transpose", "conv", "transpose"]
    assert _layouts(after) == ["channels_last"]
    assert choose_layouts(after, ON_CPU) is after


@for_each("dtype", [F16, BF16, F32])
def test_convolutions_of_16_bits_where_matrices_are(dtype: DType) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(dtype, 2, 8, 5, 5))
    w = g.input("w", tensor(dtype, 16, 8, 3, 3))
    graph = g.graph(g("conv", x, w, strides=(1, 1), pads=(1,) * 4, dilations=(1, 1)))
    after = choose_layouts(graph, ON_GPU)
    verify_graph(after)
    assert _layouts(after) == ["channels_first" if dtype is F32 else "channels_last"]
    assert (after is graph) == (dtype is F32)


def test_neighbours_share_a_layout_and_what_lies_between_follows() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 16, 8, 8))
    y = g("relu", g.conv(x, 16, 3))
    z = g("add", y, g.conv(g("relu", g.conv(y, 32)), 16))
    after = _check(g.graph(g.conv(z, 16, 3)))
    assert _layouts(after) == ["channels_last"] * 4
    sunk = dce(rewrite_graph(after, sink_transpose), ON_CPU)
    assert [n.op for n in sunk.nodes].count("transpose") == 2


def test_the_models_own_transposes_count() -> None:
    """A depthwise convolution between two transposes costs none with its channels last."""
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 8, 8, 16))
    y = g.conv(g("transpose", x, perm=(0, 3, 1, 2)), 16, 3, depthwise=True)
    after = _check(g.graph(g("transpose", y, perm=(0, 2, 3, 1))))
    assert _layouts(after) == ["channels_last"]
    sunk = dce(rewrite_graph(after, sink_transpose), ON_CPU)
    assert [n.op for n in sunk.nodes] == ["conv"]
    alone = _Maker("g")
    x = alone.input("x", tensor(F32, 1, 16, 8, 8))
    graph = alone.graph(alone.conv(x, 16, 3, depthwise=True))
    assert _check(graph) is graph


def test_pixels_that_are_stepped_over_are_left_out_first() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 16, 17, 16))
    after = _check(g.graph(g.conv(x, 64, stride=2), g.conv(x, 64, stride=2)))
    assert [n.op for n in after.nodes] == ["slice", "conv", "conv"]
    assert str(after.nodes[0].type) == "f32[2, 16, 9, 8]"
    few = _Maker("g")
    x = few.input("x", tensor(F32, 1, 64, 6, 6))
    after = _check(few.graph(few.conv(x, 128, stride=2)))
    assert [n.op for n in after.nodes] == ["slice", "transpose", "conv", "transpose"]


def test_a_value_is_transposed_once_for_all_its_readers() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 8, 6, 6))
    after = _check(g.graph(g.conv(x, 8, 3), g.conv(x, 8, 5)))
    assert [n.op for n in after.nodes] == ["transpose", "conv", "transpose", "conv", "transpose"]


def test_weights_that_are_computed_stay_as_they_are() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 32, 9, 9))
    w = g("relu", g.input("w", tensor(F32, 32, 32, 3, 3)))
    window = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)}
    after = _check(g.graph(g("conv", x, w, **window)))
    assert _layouts(after) == ["channels_last"]


def test_a_graph_without_windows_is_the_same_object() -> None:
    graph = KERNELS["matmul"](2, 3, 4)
    assert choose_layouts(graph, ON_CPU) is graph


def test_parts_of_either_layout_are_joined_with_the_channels_last() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 16, 24, 24))
    other = g("reshape", g.input("y", tensor(F32, 1, 8, 576)), shape=(1, 8, 24, 24))
    joined = g("concat", g.conv(x, 16, 3), other, axis=1)
    graph = g.graph(g.conv(joined, 16, 3))
    after = dce(rewrite_graph(choose_layouts(graph, ON_CPU), sink_transpose), ON_CPU)
    verify_graph(after)
    check_types(after)
    (concat,) = [n for n in after.nodes if n.op == "concat"]
    assert str(concat.type) == "f32[1, 24, 24, 24]"
    assert after.producer[concat.inputs[0]].op == "conv"
    inputs = random_inputs(graph)
    expected, found = run_graph(graph, inputs), run_graph(after, inputs)
    for old, new in zip(graph.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(found[new], expected[old], rtol=1e-4, atol=1e-4)
