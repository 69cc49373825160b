from __future__ import annotations

from tests.for_each import for_each
from tilewright.schedule.intrin.nvidia.tma import (
    SIDES,
    SWIZZLE_COLUMNS,
    tma_load_name,
)
from tilewright.schedule.intrin.nvidia.wgmma import WGMMA_N
from tilewright.schedule.intrin.table import INTRINSICS


@for_each("side", SIDES)
def test_long_rows_come_in_panels(side: int) -> None:
    high, wide = (
        INTRINSICS[tma_load_name("bf16", *s)]
        for s in ((side, SWIZZLE_COLUMNS), (SWIZZLE_COLUMNS, side))
    )
    assert high.tma_box == (side, SWIZZLE_COLUMNS)
    assert wide.tma_box == (SWIZZLE_COLUMNS, SWIZZLE_COLUMNS)
    assert high.llvm.count("@llvm.nvvm.cp.async.bulk") == 1
    assert wide.llvm.count("@llvm.nvvm.cp.async.bulk") == side // SWIZZLE_COLUMNS
    # All of them are counted, whoever brings how much of it.
    for row in (high, wide):
        assert f"i32 {side * SWIZZLE_COLUMNS * 2})" in row.llvm


@for_each("side", SIDES)
def test_bytes_come_k_major(side: int) -> None:
    row = INTRINSICS[tma_load_name("u8", side, 2 * SWIZZLE_COLUMNS)]
    assert row.tma_box == (side, 2 * SWIZZLE_COLUMNS)
    assert f"i32 {side * 2 * SWIZZLE_COLUMNS})" in row.llvm
    assert tma_load_name("u8", 2 * SWIZZLE_COLUMNS, 64) not in INTRINSICS


def test_every_operand_of_wgmma_can_be_copied() -> None:
    assert set(WGMMA_N) <= set(SIDES)
