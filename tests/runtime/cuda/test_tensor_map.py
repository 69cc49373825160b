from __future__ import annotations

import ctypes

from tilewright.runtime.cuda.tensor_map import ALIGNMENT, BYTES, SIGNATURE, blank, encoding


def test_room_begins_where_the_driver_wants_it() -> None:
    for room in (blank() for _ in range(8)):
        assert ctypes.addressof(room) % ALIGNMENT == 0
        assert ctypes.sizeof(room) == BYTES


def test_columns_come_first() -> None:
    given = encoding(blank(), 4096, (100, 72), (128, 64))
    assert len(given) == len(SIGNATURE)
    assert given[3] == 4096
    assert [list(x) for x in given[4:7]] == [[72, 100], [144], [64, 128]]


def test_matrices_are_further_dimensions() -> None:
    given = encoding(blank(), 4096, (6, 100, 4, 72), (1, 128, 1, 64))
    assert given[2] == 4
    sizes, strides, box = ([72, 4, 100, 6], [144, 576, 57600], [64, 1, 128, 1])
    assert [list(x) for x in given[4:8]] == [sizes, strides, box, [1] * 4]


def test_a_row_of_a_box_tells_the_bytes_of_elements() -> None:
    found = [encoding(blank(), 4096, (100, 72), (128, n)) for n in (128, 64, 32)]
    assert [x[1] for x in found] == [0, 1, 11]
    assert [list(x[5]) for x in found] == [[72], [144], [288]]
