from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.intrin.turn import GROUP, TURN, turn_name
from tilewright.schedule.intrin.wgmma import COLUMNS, ROWS


def test_a_word_is_handed_on_once_for_each_element() -> None:
    for name, row in TURN.items():
        a, c = pattern_of(name).params
        rows, columns = (int(str(d)) for d in c.shape)
        assert a.shape == c.shape
        assert row.llvm.count("@llvm.nvvm.shfl") == rows // 8 * columns // 4
        assert columns % GROUP == 0


def test_every_width_of_wgmma_has_one() -> None:
    assert all(INTRINSICS[turn_name(ROWS, columns)].turns for columns in COLUMNS)
