from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.for_each import for_each
from tests.target.models.cuda_devices import H100, H200, RTX_3060
from tilewright.core.errors import ConfigError
from tilewright.target.gpu import INSTRUCTIONS
from tilewright.target.models.nvidia import NVIDIA, target_of


def test_rows() -> None:
    for arch, target in NVIDIA.items():
        assert target.cpu == arch
        assert target.warps_per_sm * target.warp_size >= target.threads_per_block
        assert target.static_shared <= target.max_shared_per_block <= target.shared_per_sm
        narrow = {"f16", "i8", "u8"} if arch == "sm_75" else {"f16", "bf16", "tf32", "i8", "u8"}
        assert {s.operands for s in target.mma_shapes} == narrow
        assert {*target.instructions} <= {*INSTRUCTIONS}
        # FMAs of 64 or 128 lanes at this clock, as data sheets round them
        lanes = target.f32_rate / (2 * target.sm_count * target.clock)
        assert min(abs(lanes / n - 1) for n in (64, 128)) < 0.05


def test_only_sm_90a_has_wgmma() -> None:
    for arch, target in NVIDIA.items():
        shapes = any(s.is_of_warpgroup for s in target.mma_shapes)
        assert shapes == target.has("wgmma") == target.has("setmaxnreg") == (arch == "sm_90a")


def test_each_generation_has_what_the_one_before_has() -> None:
    rows = [t for t in NVIDIA.values() if t.cpu[-1].isdigit()]
    assert [t.cpu for t in rows] == ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"]
    for before, after in pairwise(rows):
        assert {*before.instructions} <= {*after.instructions}


def test_a_gpu_of_the_table_is_its_row() -> None:
    assert target_of(H200) is NVIDIA["sm_90a"]


def test_another_product_of_an_architecture() -> None:
    target = target_of(H100)
    assert (target.cpu, target.mma_shapes) == ("sm_90a", NVIDIA["sm_90a"].mma_shapes)
    assert (target.sm_count, target.l2) == (132, 50 << 20)
    assert target.memory_rate == pytest.approx(3.35e12, rel=0.01)


def test_rates_from_clocks_and_bandwidth() -> None:
    target = target_of(RTX_3060)
    assert (target.cpu, target.sm_count, target.warps_per_sm) == ("sm_86", 28, 48)
    assert target.max_shared_per_block == 99 << 10
    # the data sheet has 12.7 TFLOP/s, 25.5 of tensor cores, 360 GB/s
    assert target.f32_rate == pytest.approx(12.7e12, rel=0.02)
    assert target.mma_rate == pytest.approx(25.5e12, rel=0.02)
    assert target.memory_rate == pytest.approx(360e9, rel=0.01)


def test_without_clocks_the_rates_of_the_row_for_each_sm() -> None:
    target = target_of(replace(RTX_3060, clock_khz=0, memory_clock_khz=0))
    row = NVIDIA["sm_86"]
    assert target.f32_rate / 28 == pytest.approx(row.f32_rate / row.sm_count)
    assert target.memory_rate / 28 == pytest.approx(row.memory_rate / row.sm_count)


@for_each(("major", "minor", "arch"), [(8, 7, "sm_86"), (10, 3, "sm_100"), (12, 0, "sm_100")])
def test_newer_gpus_run_the_code_of_the_row_before(major: int, minor: int, arch: str) -> None:
    target = target_of(replace(H200, major=major, minor=minor))
    assert target.cpu == arch
    assert target.mma_shapes == NVIDIA["sm_80"].mma_shapes


def test_gpus_that_are_too_old() -> None:
    with pytest.raises(ConfigError, match=r"target\.old-gpu.*7\.0.*7\.5") as caught:
        target_of(replace(H200, major=7, minor=0))
    assert "sm_75" in caught.value.help
