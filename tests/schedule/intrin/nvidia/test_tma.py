from __future__ import annotations

import pytest

from tilewright.schedule.intrin.nvidia.tma import PANEL, SIDES, mbarrier_init_name, tma_load_name
from tilewright.schedule.intrin.nvidia.wgmma import COLUMNS
from tilewright.schedule.intrin.table import INTRINSICS


@pytest.mark.parametrize("side", SIDES)
def test_long_rows_come_in_panels(side: int) -> None:
    high, wide = (INTRINSICS[tma_load_name("bf16", *s)] for s in ((side, PANEL), (PANEL, side)))
    assert high.box == (side, PANEL)
    assert wide.box == (PANEL, PANEL)
    assert high.llvm.count("@llvm.nvvm.cp.async.bulk") == 1
    assert wide.llvm.count("@llvm.nvvm.cp.async.bulk") == side // PANEL
    # All of them are counted, whoever brings how much of it.
    for row in (high, wide):
        assert f"i32 {side * PANEL * 2})" in row.llvm


@pytest.mark.parametrize("side", SIDES)
def test_bytes_come_along_the_depth(side: int) -> None:
    row = INTRINSICS[tma_load_name("u8", side, 2 * PANEL)]
    assert row.box == (side, 2 * PANEL)
    assert f"i32 {side * 2 * PANEL})" in row.llvm
    assert tma_load_name("u8", 2 * PANEL, 64) not in INTRINSICS


def test_every_operand_of_wgmma_can_be_copied() -> None:
    assert set(COLUMNS) <= set(SIDES)
    assert "i32 2)" in INTRINSICS[mbarrier_init_name(2)].llvm
