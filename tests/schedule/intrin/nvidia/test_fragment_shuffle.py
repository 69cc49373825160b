from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.fragment_shuffle import (
    FRAGMENT_SHUFFLES,
    ROW_ELEMENTS,
    SHUFFLE_COLUMNS,
    quad_transpose_name,
    row_transpose_name,
)
from tilewright.schedule.intrin.nvidia.wgmma import WARP_M, WGMMA_N
from tilewright.schedule.intrin.table import INTRINSICS


def test_half_of_the_registers_are_exchanged_in_each_round() -> None:
    for name, row in FRAGMENT_SHUFFLES.items():
        a, c = pattern_of(name).params
        rows, columns = (int(str(d)) for d in c.shape)
        rounds = 3 if row.lane_elements == ROW_ELEMENTS else 2
        words = columns // 8 * c.dtype.bits // 32
        assert a.shape == c.shape
        assert row.llvm.count("@llvm.nvvm.shfl") == rounds * rows // 8 * words
        assert columns % SHUFFLE_COLUMNS == 0


def test_every_width_of_wgmma_has_one() -> None:
    for way in (quad_transpose_name, row_transpose_name):
        for total in ("f32", "i32"):
            names = [way(WARP_M, columns, total) for columns in WGMMA_N]
            assert all(INTRINSICS[name].lane_elements for name in names)
            assert all(str(pattern_of(name).params[0].dtype) == total for name in names)
