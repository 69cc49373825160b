from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS
from tilewright.schedule.intrin.nvidia.wgmma import (
    A_IN_REGISTERS,
    WARP_M,
    WGMMA_K,
    WGMMA_N,
    wait_name,
    wgmma_names,
)
from tilewright.schedule.intrin.table import INTRINSICS


def test_every_width_has_its_instructions() -> None:
    for columns in WGMMA_N:
        for dtype in ("f16", "bf16"):
            for right in "nt":
                zero, step = wgmma_names(dtype, columns, right)
                *_, total = pattern_of(step).params
                assert [int(str(d)) for d in total.shape] == [WARP_M, columns]
                assert pattern_of(zero).params[-1].shape == total.shape
                assert INTRINSICS[step].llvm.count("wgmma.mma_async") == WGMMA_K // 16


def test_bytes_are_summed_in_i32() -> None:
    for kind in BYTE_KINDS:
        zero, step = wgmma_names(kind, 64, "t")
        row = INTRINSICS[step]
        assert {str(pattern_of(n).params[-1].dtype) for n in (zero, step, row.wait)} == {"i32"}
        assert row.wait == wait_name(64, acc="i32")
        assert f"k{2 * WGMMA_K // 4}.s32." in row.llvm
        assert "$0" in row.llvm
        assert ", p;" in row.llvm  # no factors, and nothing is transposed


def test_long_rows_are_in_panels() -> None:
    names = [wgmma_names("bf16", 128, right)[1] for right in "nt"]
    assert [INTRINSICS[name].swizzle_panels for name in names] == [("a", "b")] * 2


def test_a_loop_invariant_fragment_is_copied() -> None:
    texts = {left: INTRINSICS[wgmma_names("f16", 64, "t", left)[1]].llvm for left in A_IN_REGISTERS}
    assert [texts[left].count("lop3.b32 kept") for left in A_IN_REGISTERS] == [0, 4 * WGMMA_K // 16]
    reads = "{kept0, kept1, kept2, kept3}"
    assert [reads in texts[left] for left in A_IN_REGISTERS] == [False, True]
