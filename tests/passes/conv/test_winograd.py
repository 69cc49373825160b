from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.winograd import WinogradAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.context import PassContext
from tilewright.passes.conv import winograd_cost
from tilewright.passes.conv.winograd import winograd, winograd_tile
from tilewright.target.registry import CPUS

AARCH64 = CPUS["aarch64"]


def _conv(
    *size: int | Expr,
    window: int = 3,
    channels: int = 64,
    filters: int = 72,
    constant: bool = True,
    **attrs: object,
) -> Graph:
    """`relu(conv(x, w) + bias)` of images with the channels last."""
    ones = (1,) * len(size)
    settings = {
        "strides": ones,
        "pads": (window // 2,) * 2 * len(size),
        "dilations": ones,
        "layout": "channels_last",
        **attrs,
    }
    rng = np.random.default_rng(window)
    g = GraphBuilder("convolution")
    x = g.input("x", tensor(F32, Var("N"), *size, channels))
    shape = (filters, channels, *(window for _ in size))
    data = rng.standard_normal(shape, dtype=np.float32) / 16
    w = g.constant(data, "w") if constant else g.input("w", tensor(F32, *shape))
    y = g.add("conv", x, w, attrs=ConvAttrs(**settings))  # type: ignore[arg-type]
    bias = g.constant(rng.standard_normal(filters, dtype=np.float32), "bias")
    return g.graph(g.add("relu", g.add("add", y, bias)))


def _tile(graph: Graph) -> tuple[int, ...]:
    (settings,) = {n.attrs for n in graph.nodes if isinstance(n.attrs, WinogradAttrs)}
    assert isinstance(settings, WinogradAttrs)
    return settings.tile


@pytest.mark.parametrize("size", [(5, 6), (8, 8), (50,)])
def test_convolutions_become_matrix_products(size: tuple[int, ...]) -> None:
    graph = _conv(*size)
    after = winograd(graph, PassContext(AARCH64))
    verify_graph(after)
    check_types(after)
    assert {"winograd_input", "matmul", "winograd_output"} <= {n.op for n in after.nodes}
    inputs = random_inputs(graph, {"N": 2})
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    found = run_graph(after, inputs)[after.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


# Whole tiles and not, in one axis and two, with windows of three, five and seven taps.
@pytest.mark.parametrize(
    ("size", "window"),
    [((8, 8), 3), ((7, 14), 3), ((9, 10), 5), ((37,), 3), ((64,), 7)],
)
def test_natively(size: tuple[int, ...], window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd_cost, "MIN_GAIN", 0.0)  # whatever this machine would gain
    graph = _conv(*size, window=window)
    inputs = random_inputs(graph, {"N": 3})
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    model = compile(graph, cache=False)
    assert "winograd_input" in model.explain()
    found = model.run(inputs)[graph.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_sizes_may_be_symbolic() -> None:
    graph = _conv(Var("H"), Var("W"))
    assert winograd(graph, PassContext(AARCH64)) is not graph
    model = compile(graph, cache=False)
    assert "winograd_input" in model.explain()
    for height, width in [(1, 1), (4, 8), (17, 5)]:
        inputs = random_inputs(graph, {"N": 2, "H": height, "W": width})
        expected = run_graph(graph, inputs)[graph.outputs[0]]
        found = model.run(inputs)[graph.outputs[0]]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("size", "window"), [((12, 12), 3), ((14, 14), 3), ((66,), 5)])
def test_errors_stay_small(size: tuple[int, ...], window: int) -> None:
    """Below 2e-5 of the largest output, against sums in f64."""
    graph = _conv(*size, window=window, channels=512, filters=64)
    assert max(_tile(winograd(graph, PassContext(AARCH64)))) >= 4
    inputs = random_inputs(graph, {"N": 1})
    exact = _in_f64(inputs["x"], graph.constant_by_name["w"].data, window // 2)
    bias = graph.constant_by_name["bias"].data
    expected = np.maximum(exact + bias, 0)
    found = compile(graph, cache=False).run(inputs)[graph.outputs[0]]
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def _in_f64(x: np.ndarray, w: np.ndarray, pad: int) -> np.ndarray:
    x, w = x.astype(np.float64), w.astype(np.float64)
    rank = x.ndim - 2
    padded = np.pad(x, [(0, 0), *[(pad, pad)] * rank, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, w.shape[2:], axis=tuple(range(1, rank + 1))
    )
    taps = tuple(range(rank + 2, 2 * rank + 2))
    axes = ((rank + 1, *taps), (1, *range(2, rank + 2)))
    return np.tensordot(windows, w, axes)


@for_each(
    "attrs",
    [
        {"strides": (2, 2)},
        {"dilations": (2, 2)},
        {"channels": 4},
        {"filters": 4},
        {"window": 1},
        {"constant": False},
    ],
)
def test_others_stay(attrs: dict[str, object]) -> None:
    graph = _conv(8, 8, **attrs)  # type: ignore[arg-type]
    assert winograd(graph, PassContext(AARCH64)) is graph


def test_the_layout_does_not_decide_whether_it_pays() -> None:
    for layout in ("channels_last", "channels_first"):
        g = GraphBuilder("convolution")
        shape = (1, 64, 28, 28) if layout == "channels_first" else (1, 28, 28, 64)
        x = g.input("x", tensor(F32, *shape))
        w = g.constant(np.ones((64, 64, 3, 3), np.float32), "w")
        y = g.add("conv", x, w, attrs=ConvAttrs((1, 1), (1,) * 4, (1, 1), layout))
        graph = g.graph(y)
        (n,) = graph.nodes
        assert winograd_tile(n, graph.tensor_type("w"), AARCH64) == (4, 4)
