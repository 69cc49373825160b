from __future__ import annotations

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


def test_tf32() -> None:
    assert not any(s.operands == "f32" for s in H200.mma_shapes)
    rounded = [(s.m, s.n, s.k) for s in with_tf32(H200).mma_shapes if s.operands == "f32"]
    assert rounded == [(16, 8, 8), (64, 256, 8)]
