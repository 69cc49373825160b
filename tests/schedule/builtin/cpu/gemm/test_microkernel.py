from __future__ import annotations

from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel


def test_columns_are_whole_vectors() -> None:
    assert Microkernel(8, 48, 16).vectors == 3
    assert Microkernel(8, 12, 4, lane_fma=True).vectors == 3
