from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential.kernel_graphs import _Maker
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.gemm.test_tensor_core import assembled, on_threads
from tests.schedule.builtin.gpu.scheduled import H200, compare, finalized
from tests.schedule.builtin.scheduled import assert_replays, kinds, sources
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu import depthwise as depthwise_module
from tilewright.schedule.builtin.gpu.depthwise import StencilPlan, plan_stencil
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.target.gpu import GpuTarget

# A machine that few points keep busy.
SMALL = replace(H200, sm_count=1)


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = replace(depthwise_module.OCCUPANCY, stencil_threads=64)
    monkeypatch.setattr(depthwise_module, "OCCUPANCY", busy)


def depthwise(
    c: int, h: int, w: int, k: int = 3, stride: int = 1, turned: bool = False, last: bool = False
) -> Graph:
    """A convolution of each channel, which are first or last; of an array that is turned before."""
    b = _Maker("depthwise")
    x = b.input(2, h, w, c) if turned != last else b.input(2, c, h, w)
    if turned:
        x = b.add("transpose", x, perm=(0, 2, 3, 1) if last else (0, 3, 1, 2))
    before, after = (k - 1) // 2, k // 2
    window = {"strides": (stride, stride), "pads": (before, before, after, after)}
    layout = {"layout": "channels_last"} if last else {}
    y = b.add("conv", x, b.weight(c, 1, k, k), **window, dilations=(1, 1), groups=c, **layout)
    return b.g.graph(b.add("relu", y))


def pool() -> Graph:
    """The largest of windows, channels last."""
    b = _Maker("pool")
    window = {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    return b.g.graph(b.add("max_pool", b.input(1, 8, 8, 64), **window, layout="channels_last"))


def the_kernel(graph: Graph, target: GpuTarget = SMALL) -> tuple[Func, Func, str]:
    """The one kernel with a sum: before it is scheduled and after, and the rule."""
    for func, constants in sources(graph):
        if any(map(reductions, block_graph(func).blocks)):
            result = schedule_for_gpu(func, constants, target)
            assert_replays(func, result)
            return func, result.func, result.rule
    raise AssertionError


CASES = {
    "channels first": depthwise(3, 8, 14),
    "with a stride": depthwise(16, 10, 12, 5, 2),
    "turned before": depthwise(32, 2, 32, turned=True),
    "channels last": depthwise(16, 4, 8, last=True),
    "largest": pool(),
}


@pytest.mark.parametrize("case", CASES)
def test_meaning(case: str) -> None:
    func, found, rule = the_kernel(CASES[case])
    assert rule == "gpu.depthwise"
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    compare(run(found, arrays, {}), expected)
    compare(run(finalized(found), arrays, {}), expected)


@pytest.mark.parametrize("case", ["channels first", "turned before", "largest"])
def test_emitted_code_by_threads_of_this_machine(case: str) -> None:
    func, found, _ = the_kernel(CASES[case])
    assert not found.layouts
    on_threads(func, found, {})


def plan_of(graph: Graph, target: GpuTarget) -> StencilPlan | None:
    """The plan for a convolution as it is given."""
    func, _, _ = the_kernel(graph)
    structure = block_graph(func)
    (block,) = (b for b in structure.blocks if reductions(b))
    return plan_stencil(structure, block.name, target)


def test_plan() -> None:
    plan = plan_of(depthwise(64, 56, 56, 7, turned=True), SMALL)
    assert plan == StencilPlan("conv.padded", "i2", "r0", 14, 1)
    assert plan_of(depthwise(4, 28, 28, 7, turned=True), H200) is None  # few points
    assert plan_of(depthwise(64, 57, 57, 3, 3, turned=True), SMALL) is None  # they do not overlap


def test_what_lies_across_is_turned_first() -> None:
    _, found, _ = the_kernel(CASES["turned before"])
    assert len(kinds(found)["grid"]) == 2
    assert block_graph(found).buffers["conv.padded"].scope == "register"


@pytest.mark.ptxas
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_assemble_without_spills(stride: int, tmp_path: Path) -> None:
    for graph in (depthwise(96, 56, 56, 7, stride), depthwise(96, 56, 56, 7, stride, last=True)):
        _, found, rule = the_kernel(graph)
        assert rule == "gpu.depthwise"
        assembled(found, H200, tmp_path)
