from __future__ import annotations

from dataclasses import replace

import pytest

from tests.for_each import for_each
from tilewright.target.gpu import with_tf32
from tilewright.target.registry import GPUS

H200 = GPUS["sm_90a"]


def test_facts() -> None:
    assert H200.capability == (9, 0)
    assert H200.architecture == "nvptx64"
    assert H200.emits_ptx
    assert H200.lanes(32) == 4
    assert "132 SMs" in H200.describe()


def test_programmatic_dependent_launch() -> None:
    assert H200.has_pdl
    assert not GPUS["sm_80"].has_pdl


def test_instructions_by_name() -> None:
    assert H200.has("wgmma")
    assert not GPUS["sm_90"].has("wgmma")
    assert [arch for arch, t in GPUS.items() if not t.has("cp.async")] == ["sm_75"]
    with pytest.raises(AssertionError):
        H200.has("mma")


def test_matrix_instructions_by_operands() -> None:
    t4 = GPUS["sm_75"]
    short = t4.warp_mma("f16")
    assert short is not None
    assert (short.m, short.n, short.k, short.is_of_warpgroup) == (16, 8, 8, False)
    assert t4.warp_mma("bf16") is t4.warp_mma("tf32") is t4.warpgroup_mma("f16") is None
    grouped = H200.warpgroup_mma("bf16")
    assert grouped is not None
    assert grouped.is_of_warpgroup
    assert replace(H200, instructions=()).warpgroup_mma("bf16") is None


def test_stages_of_a_pipeline() -> None:
    assert GPUS["sm_75"].max_pipeline_stages == 2
    assert H200.max_pipeline_stages is None


@for_each(
    ("arch", "shared", "threads", "blocks"),
    [
        ("sm_90a", 227 << 10, 128, 1),
        ("sm_90a", 98304, 256, 2),
        ("sm_86", 98304, 256, 1),
        ("sm_86", 0, 32, 16),  # as many as an SM can name
        ("sm_75", 32 << 10, 128, 2),
        ("sm_75", 0, 1024, 1),
    ],
)
def test_blocks_of_an_sm(arch: str, shared: int, threads: int, blocks: int) -> None:
    assert GPUS[arch].resident_blocks(shared, threads) == blocks


def test_tf32() -> None:
    assert not any(s.operands == "f32" for s in H200.mma_shapes)
    rounded = [(s.m, s.n, s.k) for s in with_tf32(H200).mma_shapes if s.operands == "f32"]
    assert rounded == [(16, 8, 8), (64, 256, 8)]
