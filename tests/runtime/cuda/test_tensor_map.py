from __future__ import annotations

import ctypes

from tilewright.runtime.cuda.tensor_map import ALIGNMENT, BYTES, SIGNATURE, blank, encoding


def test_room_begins_where_the_driver_wants_it() -> None:
    for room in (blank() for _ in range(8)):
        assert ctypes.addressof(room) % ALIGNMENT == 0
        assert ctypes.sizeof(room) == BYTES


def test_columns_come_first() -> None:
    given = encoding(blank(), 4096, 100, 64, (128, 32))
    assert len(given) == len(SIGNATURE)
    assert given[3] == 4096
    assert [list(x) for x in given[4:7]] == [[64, 100], [128], [32, 128]]
