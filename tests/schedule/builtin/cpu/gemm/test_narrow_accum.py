from __future__ import annotations

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.scheduled import scheduled, sources
from tilewright.core.dtypes import F16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import buffers
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.cpu.gemm.k_blocked import KBlock
from tilewright.schedule.builtin.cpu.gemm.narrow_accum import narrow_k_block
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS

TARGETS = [CPUS["neoverse-v1"], CPUS["sapphirerapids"]]


def _weights(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float16)


def _dense(m: int, n: int, k: int) -> Graph:
    g = GraphBuilder("dense")
    x = g.input("x", tensor(F16, m, k))
    y = g.add("matmul_f16acc", x, g.constant(_weights(k, n)))
    return g.graph(g.add("relu", g.add("add", y, g.constant(_weights(n)))))


def _conv(size: int, channels: int, filters: int, groups: int = 1) -> Graph:
    g = GraphBuilder("conv")
    x = g.input("x", tensor(F16, 1, size, size, channels))
    w = g.constant(_weights(filters, channels // groups, 3, 3))
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last", groups)
    return g.graph(g.add("conv_f16acc", x, w, attrs=attrs))


def _check(graph: Graph, target: CpuTarget) -> str:
    """Scheduled, it gives what the loops give that sum everything in f32; the last trace."""
    text = ""
    for (func, _), result in zip(sources(graph), scheduled(graph, target), strict=True):
        arrays = sample(result.func, {})
        expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
        for name, found in run(result.func, arrays, {}).items():
            scale = float(np.abs(expected[name]).max())
            np.testing.assert_allclose(found, expected[name], rtol=1e-2, atol=5e-3 * scale)
        text = str(result.trace)
        assert ": f16[" in print_func(result.func)
    return text


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(1, 40, 256), (7, 33, 256), (13, 8, 400)])
def test_long_sums_are_cut(sizes: tuple[int, int, int], target: CpuTarget) -> None:
    trace = _check(_dense(*sizes), target)
    assert "rfactor" in trace
    assert "narrow_accumulator" in trace


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize(
    ("sizes", "turns"), [((1, 40, 768), 1), ((7, 33, 1024), 1), ((13, 8, 396), 0)]
)
def test_very_long_sums_are_cut_twice(
    sizes: tuple[int, int, int], turns: int, target: CpuTarget
) -> None:
    trace = _check(_dense(*sizes), target)
    assert trace.count("rfactor") == 2 + turns
    assert trace.count("narrow_accumulator") == 2 + turns


def test_only_very_long_sums_are_wide() -> None:
    for depth, wide in ((256, False), (768, True)):
        (result,) = scheduled(_dense(5, 24, depth), TARGETS[0])
        volatile = [b for b in buffers(result.func).values() if b.scope == "volatile"]
        assert any(b.dtype == F16 for b in volatile)
        assert any(b.dtype == F32 for b in volatile) == wide


@pytest.mark.parametrize("sizes", [(1, 9, 3), (5, 17, 40), (6, 8, 63)])
def test_short_sums_stay_whole(sizes: tuple[int, int, int]) -> None:
    trace = _check(_dense(*sizes), TARGETS[0])
    assert "rfactor" not in trace
    assert "narrow_accumulator" in trace


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(6, 8, 100), (1, 40, 128), (7, 33, 64)])
def test_two_sums_take_turns(sizes: tuple[int, int, int], target: CpuTarget) -> None:
    trace = _check(_dense(*sizes), target)
    assert trace.count("rfactor") == 1
    assert trace.count("narrow_accumulator") == 2


@pytest.mark.parametrize(("channels", "filters", "groups"), [(24, 17, 1), (3, 8, 1), (16, 16, 16)])
def test_convolutions(channels: int, filters: int, groups: int) -> None:
    assert "narrow_accumulator" in _check(_conv(5, channels, filters, groups), TARGETS[0])


def _depth(graph: Graph) -> KBlock | None:
    ((func, _),) = sources(graph)
    return narrow_k_block(next(b for b in block_graph(func).blocks if reductions(b)))


def test_where_sums_are_cut() -> None:
    assert _depth(_dense(4, 8, 128)) == KBlock(1, 0, 128)
    assert _depth(_dense(4, 8, 192)) == KBlock(0, 96, 96)
    assert _depth(_dense(4, 8, 768)) == KBlock(0, 128, 128)
    assert _depth(_dense(4, 8, 1031)) is None  # no equal parts
    assert _depth(_conv(4, 64, 8)) == KBlock(1, 1, 64)
    assert _depth(_conv(4, 32, 8)) == KBlock(2, 1, 96)
