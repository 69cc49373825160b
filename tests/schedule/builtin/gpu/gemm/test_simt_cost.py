from __future__ import annotations

from dataclasses import replace

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.schedule.builtin.gpu.gemm.operand_copy import OperandCopy
from tilewright.schedule.builtin.gpu.gemm.simt_cost import SimtShape, Windows
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import SIMT_TILES, SimtTile

EASY = OperandCopy("km", k_major=False, vectors=True)
K_MAJOR = replace(EASY, k_major=True)
WORDS = replace(EASY, k_major=True, vectors=False)
SHAPE = SimtShape(1, 1000, 1000, 1000, EASY, EASY)


@for_each("tile", SIMT_TILES, ids=[tile.spelling for tile in SIMT_TILES])
def test_it_takes_longer_the_worse_an_operand_lies(tile: SimtTile) -> None:
    easy, *worse = (replace(SHAPE, right=w).seconds(tile, H200) for w in (EASY, K_MAJOR, WORDS))
    assert min(worse) >= easy
    assert max(worse) > easy


@for_each("tile", SIMT_TILES, ids=[tile.spelling for tile in SIMT_TILES])
def test_more_work_takes_longer_and_no_tile_beats_the_peak(tile: SimtTile) -> None:
    seconds = SHAPE.seconds(tile, H200)
    for more in (replace(SHAPE, m=16000), replace(SHAPE, k=4000), replace(SHAPE, batch=16)):
        assert more.seconds(tile, H200) > seconds
    assert seconds > 2 * 1000**3 / H200.f32_rate


def test_parts_of_a_long_k_pay_where_tiles_are_few() -> None:
    tile = SIMT_TILES[0]
    deep = SimtShape(1, tile.block_m, tile.block_n, 100_000, EASY, EASY)
    assert deep.seconds(replace(tile, split_k=16), H200) < deep.seconds(tile, H200) / 4
    short = replace(SHAPE, m=8000, n=8000, k=64)
    assert short.seconds(replace(tile, split_k=4), H200) > short.seconds(tile, H200)


def test_channels_are_cut_where_parts_have_whole_vectors_or_no_side_is_cut() -> None:
    assert Windows((3, 3), 64).parts_of_channels(4) == 4
    assert Windows((4, 4), 6).parts_of_channels(4) == 1
    assert Windows((3, 3), 6).parts_of_channels(4) == 4
    assert Windows((3, 3), 20).rounded(16) == 32


def test_channels_are_rounded_up_where_that_is_little() -> None:
    tile = SIMT_TILES[0]
    window = replace(SHAPE, left=replace(WORDS, k_major=False, window=True))
    many, few = (
        replace(window, k=9 * n, windows=Windows((3, 3), n)) for n in (2 * tile.block_k - 1, 1)
    )
    assert many.step_of_channels(tile) == tile.block_k
    assert few.step_of_channels(tile) == 1
