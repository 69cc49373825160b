"""Single operators of symbolic sizes as machine code, on data that chooses what they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.differential.native import assert_same_on_threads, check_native
from tests.ops.run_op import Dim, exprs
from tilewright.core.dtypes import F32, from_numpy
from tilewright.ir.graph.nodes import Attrs, Graph
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.image.roi import MaxRoiPoolAttrs, RoiAlignAttrs
from tilewright.ops.linalg.dft import DftAttrs
from tilewright.ops.random.philox import RandomAttrs
from tilewright.ops.tensor.tensor_scatter import TensorScatterAttrs

RNG = np.random.default_rng(6)


def _graph(op: str, attrs: Attrs | None, dims: Mapping[str, tuple[str, Sequence[Dim]]]) -> Graph:
    """An operator on inputs of given NumPy types and shapes."""
    g = GraphBuilder(op)
    names = [
        g.input(name, TensorType(from_numpy(np.dtype(kind)), exprs(*shape)))
        for name, (kind, shape) in dims.items()
    ]
    return g.graph(*g.add_many(op, *names, attrs=attrs))


def _check(graph: Graph, inputs: dict[str, np.ndarray], scale: float = 1) -> None:
    with check_native(graph, inputs, scale=scale) as model:
        assert_same_on_threads(model, inputs, 2)


@pytest.mark.parametrize("attrs", [RoiAlignAttrs((2, 3), 2), RoiAlignAttrs((2, 2), mode="max")])
def test_roi_align(attrs: RoiAlignAttrs) -> None:
    dims = {"x": ("f4", ("N", 3, "H", "W")), "rois": ("f4", ("R", 4)), "images": ("i8", ("R",))}
    graph = _graph("roi_align", attrs, dims)
    for count in (0, 5):
        corner = RNG.uniform(-1, 6, (count, 2))
        rois = np.concatenate([corner, corner + RNG.uniform(0, 9, (count, 2))], 1)
        x = RNG.standard_normal((2, 3, 7, 6)).astype("f4")
        given = {"x": x, "rois": rois.astype("f4"), "images": RNG.integers(0, 2, count)}
        _check(graph, given, scale=4)


def test_max_roi_pool() -> None:
    dims = {"x": ("f8", ("N", 3, "H", "W")), "rois": ("f8", ("R", 5))}
    graph = _graph("max_roi_pool", MaxRoiPoolAttrs((2, 2), 0.25), dims)
    regions = np.array([[0, 0, 0, 20, 30], [1, 8, 8, 12, 12], [1, 4, 4, 90, 90]], "f8")
    _check(graph, {"x": RNG.standard_normal((2, 3, 7, 6)), "rois": regions})


def test_determinant() -> None:
    graph = _graph("determinant", None, {"x": ("f8", ("B", "N", "N"))})
    for shape in ((3, 4, 4), (1, 9, 9), (0, 2, 2)):
        _check(graph, {"x": RNG.standard_normal(shape)}, scale=100)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_random(distribution: str) -> None:
    """Of a size that is known only when running, so that it is no constant."""
    g = GraphBuilder("random")
    x = g.input("x", TensorType(F32, exprs("N", 7)))
    attrs = RandomAttrs(exprs("N", 7), F32, distribution, key=77)
    graph = g.graph(g.add("add", x, g.add("random", attrs=attrs)))
    for rows in (0, 5):
        _check(graph, {"x": np.zeros((rows, 7), "f4")}, scale=4)


@pytest.mark.parametrize("n", [12, 96, 509])
def test_dft(n: int) -> None:
    """At once, split, and as a convolution."""
    graph = _graph("dft", DftAttrs(1, n), {"x": ("f8", ("rows", n, 2))})
    for rows in (0, 3):
        _check(graph, {"x": RNG.standard_normal((rows, n, 2))}, scale=1000)


def test_pairwise_coupling() -> None:
    graph = _graph("pairwise_coupling", None, {"r": ("f8", ("N", 4, 4))})
    for rows in (0, 5):
        r = np.triu(RNG.uniform(0, 1, (rows, 4, 4)), 1)
        _check(graph, {"r": r + np.tril(1 - r.transpose(0, 2, 1), -1)}, scale=100)


@pytest.mark.parametrize("circular", [False, True])
def test_tensor_scatter(circular: bool) -> None:
    dims = {
        "cache": ("f4", ("B", "L", 5)),
        "update": ("f4", ("B", "S", 5)),
        "starts": ("i8", ("B",)),
    }
    graph = _graph("tensor_scatter", TensorScatterAttrs(1, circular), dims)
    for length, new in ((7, 3), (4, 4), (5, 0)):
        cache, update = (RNG.standard_normal((3, n, 5)).astype("f4") for n in (length, new))
        last = length - 1 if circular else length - new
        starts = np.array([0, last, min(1, last)])
        _check(graph, {"cache": cache, "update": update, "starts": starts})
