from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS
from tilewright.schedule.intrin.nvidia.wgmma import (
    COLUMNS,
    DEPTH,
    HELD,
    ROWS,
    settle_name,
    wgmma_names,
)
from tilewright.schedule.intrin.table import INTRINSICS


def test_every_width_has_its_instructions() -> None:
    for columns in COLUMNS:
        for dtype in ("f16", "bf16"):
            for right in "nt":
                zero, step = wgmma_names(dtype, columns, right)
                *_, total = pattern_of(step).params
                assert [int(str(d)) for d in total.shape] == [ROWS, columns]
                assert pattern_of(zero).params[-1].shape == total.shape
                assert INTRINSICS[step].llvm.count("wgmma.mma_async") == DEPTH // 16


def test_bytes_are_summed_in_i32() -> None:
    for kind in BYTE_KINDS:
        zero, step = wgmma_names(kind, 64, "t")
        row = INTRINSICS[step]
        assert {str(pattern_of(n).params[-1].dtype) for n in (zero, step, row.settle)} == {"i32"}
        assert row.settle == settle_name(64, total="i32")
        assert f"k{2 * DEPTH // 4}.s32." in row.llvm
        assert "$0" in row.llvm
        assert ", p;" in row.llvm  # no factors, and nothing is turned


def test_long_rows_are_in_panels() -> None:
    names = [wgmma_names("bf16", 128, right)[1] for right in "nt"]
    assert [INTRINSICS[name].panels for name in names] == [("a", "b")] * 2


def test_a_kept_fragment_is_taken_over_word_by_word() -> None:
    texts = {left: INTRINSICS[wgmma_names("f16", 64, "t", left)[1]].llvm for left in HELD}
    assert [texts[left].count("lop3.b32 kept") for left in HELD] == [0, 4 * DEPTH // 16]
    reads = "{kept0, kept1, kept2, kept3}"
    assert [reads in texts[left] for left in HELD] == [False, True]
