from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.fragment_shuffle import (
    GROUP,
    ONE,
    TURN,
    quad_transpose_name,
    row_transpose_name,
)
from tilewright.schedule.intrin.nvidia.wgmma import COLUMNS, ROWS
from tilewright.schedule.intrin.table import INTRINSICS


def test_half_of_the_words_are_handed_on_in_each_round() -> None:
    for name, row in TURN.items():
        a, c = pattern_of(name).params
        rows, columns = (int(str(d)) for d in c.shape)
        rounds = 3 if row.turns == ONE else 2
        words = columns // 8 * c.dtype.bits // 32
        assert a.shape == c.shape
        assert row.llvm.count("@llvm.nvvm.shfl") == rounds * rows // 8 * words
        assert columns % GROUP == 0


def test_every_width_of_wgmma_has_one() -> None:
    for way in (quad_transpose_name, row_transpose_name):
        for total in ("f32", "i32"):
            names = [way(ROWS, columns, total) for columns in COLUMNS]
            assert all(INTRINSICS[name].turns for name in names)
            assert all(str(pattern_of(name).params[0].dtype) == total for name in names)
