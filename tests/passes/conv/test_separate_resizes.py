from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.run_with_dims import exprs
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32, F64, I32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.image.resize import TRANSFORMS, ResizeAttrs
from tilewright.ops.interpret import run_graph
from tilewright.passes.conv.separate_resizes import separate_resizes


def graph_of(
    old: tuple[int | Expr, ...], new: tuple[int | Expr, ...], dtype: DType = F32, **modes: object
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *old))
    scales = tuple(zip(exprs(*new), exprs(*old), strict=True))
    modes.setdefault("mode", "linear")
    return g.graph(g.add("resize", x, attrs=ResizeAttrs(exprs(*new), scales, **modes)))


def ops(graph: Graph) -> list[str]:
    return [n.op for n in separate_resizes(graph, ON_CPU).nodes]


@for_each("mode", ["linear", "cubic"])
@for_each("transform", [t for t in TRANSFORMS if t != "tf_crop_and_resize"])
@for_each("new", [(2, 3, 9, 14), (2, 3, 4, 1), (2, 5, 1, 23)])
def test_samples_are_the_same(mode: str, transform: str, new: tuple[int, ...]) -> None:
    graph = graph_of((2, 3, 5, 7), new, mode=mode, transform=transform)
    after = separate_resizes(graph, ON_CPU)
    assert after.nodes[-1].op in ("resize", "resample")
    inputs = random_inputs(graph)
    expected, found = run_graph(graph, inputs), run_graph(after, inputs)
    for old, name in zip(graph.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(found[name], expected[old], rtol=1e-5, atol=1e-5)


def test_the_axis_that_grows_least_comes_first() -> None:
    assert ops(graph_of((1, 4, 6, 6), (1, 4, 12, 12))) == ["resize", "resample"]
    assert ops(graph_of((1, 4, 6, 6), (1, 4, 12, 3))) == ["resample", "resize"]
    assert ops(graph_of((1, 6, 6, 4), (1, 12, 12, 4))) == ["resize", "resize"]
    assert ops(graph_of((6,), (12,))) == ["resample"]


def test_what_stays_as_it_is() -> None:
    n = Var("N")
    for graph in (
        graph_of((2, 6, 4), (2, 12, 4)),
        graph_of((6, 6), (12, 12), I32),
        graph_of((6, n), (6, n * 2)),
        graph_of((6, 6), (3, 3), transform="tf_crop_and_resize", roi=((0.0, 0.5), (0.0, 1.0))),
    ):
        assert separate_resizes(graph, ON_CPU) is graph
    assert ops(graph_of((n, 6, n), (n, 3, n * 2))) == ["resize", "resize"]
    assert ops(graph_of((6, 6), (12, 12), F64)) == ["resize", "resample"]


@pytest.mark.parametrize("exclude", [False, True])
def test_natively(exclude: bool) -> None:
    for new in ((1, 5, 17, 31), (1, 5, 3, 4)):
        graph = graph_of((1, 5, 9, 13), new, mode="cubic", exclude_outside=exclude)
        check_native(graph, random_inputs(graph), scale=10)


def test_infinities_and_nan() -> None:
    graph = graph_of((1, 6), (1, 9))
    x = np.array([[1, np.inf, 2, np.nan, 3, -np.inf]], np.float32)
    check_native(graph, {"x": x})


def test_nothing_to_sample() -> None:
    graph = graph_of((0, 3, 4), (0, 6, 8))
    check_native(graph, {"x": np.zeros((0, 3, 4), np.float32)})
    assert const(0) in graph.tensor_type(graph.outputs[0]).shape
