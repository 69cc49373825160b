from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.core.dtypes import F16
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import buffers
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.schedule import Schedule
from tilewright.tune.features.gpu_performance import LaunchWork, launches_of


def _launches(graph: Graph) -> list[LaunchWork]:
    _, scheduled = the_kernel(graph)
    return launches_of(scheduled, buffers(scheduled))


def test_a_product_on_tensor_cores() -> None:
    (work,) = _launches(dense(4096, 4096, 4096, F16))
    assert work.mma_flops == pytest.approx(2 * 4096**3, rel=0.01)
    assert work.threads == 256
    assert work.blocks == 32 * 16
    assert work.shared == (128 + 256) * 64 * 2 * 4
    assert work.memory_bytes == pytest.approx(3 * 4096 * 4096 * 2, rel=0.01)
    assert work.l2_bytes > 10 * work.memory_bytes
    assert work.stages == 4
    assert work.resident(H200) == 1
    assert work.seconds(H200) > 2 * 4096**3 / H200.mma_rate


def test_the_parts_of_split_k_are_a_launch_of_their_own() -> None:
    parts, added = _launches(dense(128, 768, 3072, F16))
    assert parts.mma_flops > 0
    assert added.mma_flops == 0
    assert added.memory_bytes > 0


def _turned(columns: bool) -> Graph:
    b = GraphBuilder("turned")
    x = b.input("x", tensor(F16, 300, 5, 7, 11))
    perm = (3, 2, 1, 0) if columns else (1, 0, 2, 3)
    return b.graph(b.add("transpose", x, attrs=make_attrs("transpose", {"perm": perm})))


def test_neighbours_far_apart_waste_sectors() -> None:
    (near,), (far,) = (_launches(_turned(columns)) for columns in (False, True))
    assert near.wasted == 1.0
    assert far.wasted > 2.0
    assert near.memory_bytes == far.memory_bytes


def test_few_blocks_leave_the_gpu_idle() -> None:
    (work,) = _launches(dense(4096, 4096, 4096, F16))
    few = replace(work, blocks=13.0)
    assert few.busy(H200) == pytest.approx(13 / 132)
    assert replace(work, blocks=133.0).busy(H200) == pytest.approx(133 / 264)
    assert replace(work, threads=32.0).busy(H200) < work.busy(H200)
    assert few.waves(H200) == pytest.approx(13 / 132)


def test_loops_without_a_schedule_are_launches_too() -> None:
    func, _ = the_kernel(dense(64, 64, 64, F16))
    assert len(launches_of(Schedule(func).func, buffers(func))) >= 1
