from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from tilewright.schedule.builtin.gpu.gemm.tensor_core_cost import GemmShape
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    MULTISTAGE_TILES,
    PERSISTENT_TILES,
)


def test_a_k_tile_takes_as_long_as_the_tensor_cores_of_an_sm() -> None:
    """Where they are slow, the same GEMM is worth more blocks: launches cost the same."""
    tile = MULTISTAGE_TILES[0]
    fast, slow = (GemmShape(1, 512, 512, 4096, k_tile_factor=factor) for factor in (1.0, 2.0))
    store = GemmShape(1, 512, 512, 4096, k_tile_factor=0.0).us(tile, 132)
    assert slow.us(tile, 132) - store == pytest.approx(2 * (fast.us(tile, 132) - store))


def test_rows_that_begin_within_sectors_come_slowly() -> None:
    """A tile of more rows reads fewer of them; up to half of the SMs have more each."""
    narrow, wide = (
        next(t for t in MULTISTAGE_TILES if t.sides == (128, n, 64)) for n in (128, 256)
    )
    within = GemmShape(1, 1408, 1536, 4096, across=(True, True))
    plain = replace(within, across=(False, False))
    assert plain.us(narrow, 132) < plain.us(wide, 132)
    assert within.us(narrow, 132) > within.us(wide, 132)
    assert within.us(narrow, 132) > 1.8 * plain.us(narrow, 132)  # 132 tiles
    assert within.us(wide, 132) < 1.3 * plain.us(wide, 132)  # 66 tiles


def test_rows_of_either_operand_may_begin_within_sectors() -> None:
    tile = next(t for t in MULTISTAGE_TILES if t.sides == (64, 192, 64))
    a, b = (GemmShape(1, 704, 2304, 4096, across=x) for x in ((True, False), (False, True)))
    assert a.us(tile, 132) < b.us(tile, 132)  # 64 rows of A, 192 of B
    turned = a.swapped()
    assert (turned.m, turned.n, turned.across) == (2304, 704, (False, True))


def test_a_tile_that_cannot_copy_windows_takes_forever() -> None:
    windows = GemmShape(1, 4096, 256, 1152, im2col=True)
    assert all(windows.us(t, 132) == inf for t in PERSISTENT_TILES)
