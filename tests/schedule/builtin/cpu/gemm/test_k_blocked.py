from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tests.schedule.builtin.cpu.gemm.f16_products import conv, dense
from tests.schedule.builtin.scheduled import check, scheduled, sources
from tilewright.core.dtypes import F16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.builtin.cpu.gemm import kc_blocking
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS

# A nearest cache so small that short reductions are cut, too; the interpreter is slow.
SMALL = [replace(CPUS[name], l1=1024, l2=16384) for name in ("aarch64", "x86-64-v4")]


F16_TARGETS = [CPUS["neoverse-v1"], CPUS["sapphirerapids"]]


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kc_blocking, "MIN_KC", 16)


@pytest.mark.parametrize("target", SMALL, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(67, 5, 128), (70, 18, 128), (67, 5, 131)])
@pytest.mark.parametrize("name", ["matmul", "dense", "batched_matmul"])
def test_meaning(name: str, sizes: tuple[int, int, int], target: object) -> None:
    graph = KERNELS[name](*sizes)
    assert check(graph, {}, target) == ["register_blocked"]  # type: ignore[arg-type]
    (result,) = scheduled(graph, target)  # type: ignore[arg-type]
    assert "rfactor" in str(result.trace)


def test_wide_panels_that_the_second_cache_holds_are_left_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    for target, depth, is_cut in (
        ("x86-64-v4", 832, False),
        ("x86-64-v4", 3072, True),
        ("x86-64-v3", 832, True),
    ):
        (result,) = scheduled(KERNELS["dense"](196, 128, depth), CPUS[target])
        assert ("rfactor" in str(result.trace)) == is_cut


def test_the_last_block_is_padded_behind_a_loop_without_masks() -> None:
    (result,) = scheduled(KERNELS["dense"](67, 5, 131), SMALL[1])
    assert "pad_reduction" in str(result.trace)
    assert "padding_last" in print_func(result.func)


def test_few_rows_are_not_cut() -> None:
    (result,) = scheduled(KERNELS["dense"](3, 30, 192), SMALL[0])
    assert "rfactor" not in str(result.trace)


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


@pytest.mark.parametrize("target", F16_TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(1, 40, 256), (7, 33, 256), (13, 8, 400)])
def test_long_narrow_sums_are_cut(sizes: tuple[int, int, int], target: CpuTarget) -> None:
    trace = _check(dense(*sizes), target)
    assert "rfactor" in trace
    assert "narrow_accumulator" in trace


@pytest.mark.parametrize("target", F16_TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize(
    ("sizes", "alternating"), [((1, 40, 768), 1), ((7, 33, 1024), 1), ((13, 8, 396), 0)]
)
def test_very_long_sums_are_cut_twice(
    sizes: tuple[int, int, int], alternating: int, target: CpuTarget
) -> None:
    trace = _check(dense(*sizes), target)
    assert trace.count("rfactor") == 2 + alternating
    assert trace.count("narrow_accumulator") == 2 + alternating


def test_only_very_long_sums_are_wide() -> None:
    for depth, wide in ((256, False), (768, True)):
        (result,) = scheduled(dense(5, 24, depth), F16_TARGETS[0])
        volatile = [b for b in buffers(result.func).values() if b.scope == "volatile"]
        assert any(b.dtype == F16 for b in volatile)
        assert any(b.dtype == F32 for b in volatile) == wide


@for_each("sizes", [(1, 9, 3), (5, 17, 40), (6, 8, 63)])
def test_short_sums_stay_whole(sizes: tuple[int, int, int]) -> None:
    trace = _check(dense(*sizes), F16_TARGETS[0])
    assert "rfactor" not in trace
    assert "narrow_accumulator" in trace


@pytest.mark.parametrize("target", F16_TARGETS, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(6, 8, 100), (1, 40, 128), (7, 33, 64)])
def test_two_accumulators_alternate(sizes: tuple[int, int, int], target: CpuTarget) -> None:
    trace = _check(dense(*sizes), target)
    assert trace.count("rfactor") == 1
    assert trace.count("narrow_accumulator") == 2


@pytest.mark.parametrize(("channels", "filters", "groups"), [(24, 17, 1), (3, 8, 1), (16, 16, 16)])
def test_narrow_convolutions(channels: int, filters: int, groups: int) -> None:
    assert "narrow_accumulator" in _check(conv(5, channels, filters, groups), F16_TARGETS[0])
