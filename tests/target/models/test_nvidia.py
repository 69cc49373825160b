from __future__ import annotations

from tilewright.target.models.nvidia import NVIDIA


def test_rows() -> None:
    for arch, target in NVIDIA.items():
        assert target.cpu == arch
        assert target.warps_per_sm * target.warp_size >= target.threads_per_block
        assert target.static_shared <= target.max_shared_per_block < target.shared_per_sm
        assert {s.operands for s in target.mma_shapes} >= {"f16", "bf16", "tf32", "i8", "u8"}


def test_only_sm_90a_has_wgmma() -> None:
    assert [arch for arch, t in NVIDIA.items() if any(s.m == 64 for s in t.mma_shapes)] == [
        "sm_90a"
    ]
