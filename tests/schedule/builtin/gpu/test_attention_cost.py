from __future__ import annotations

from dataclasses import replace

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200, with_sms
from tilewright.schedule.builtin.gpu.attention_cost import AttentionTile, AttentionWork

WARPGROUP = AttentionTile(64, 64, "warpgroup", 128, 168)
SPECIALIZED = AttentionTile(128, 128, "warp_specialized", 256, 184)
WORK = AttentionWork(16, 1024, 1024, 1024, 128, 128)


@for_each("tile", [WARPGROUP, SPECIALIZED])
def test_more_work_takes_longer(tile: AttentionTile) -> None:
    us = [replace(WORK, batches=n).us(tile, 1, H200) for n in (1, 16, 64, 256)]
    assert us == sorted(us)
    assert us[0] < us[2] < us[3]
    # Twice as many waves take nearly twice as long.
    assert 1.8 < us[3] / replace(WORK, batches=128).us(tile, 1, H200) < 2.2


@for_each("tile", [WARPGROUP, SPECIALIZED])
def test_splitting_pays_where_blocks_are_few(tile: AttentionTile) -> None:
    few, many = (replace(WORK, batches=n, first_seen=8192, last_seen=8192) for n in (1, 64))
    assert few.us(tile, 8, H200) < few.us(tile, 1, H200) / 2
    assert many.us(tile, 8, H200) > many.us(tile, 1, H200)


def test_a_band_is_half_the_work() -> None:
    band = replace(WORK, batches=64, first_seen=1)
    for tile in (WARPGROUP, SPECIALIZED):
        share = band.us(tile, 1, H200) / replace(band, first_seen=1024).us(tile, 1, H200)
        assert 0.5 < share < 0.75


def test_nothing_is_faster_than_memory() -> None:
    work = AttentionWork(512, 1, 65536, 65536, 128, 128)
    bytes = 512 * 65536 * 256 * 2
    tile = AttentionTile(16, 64, "warp", 32, 200)
    assert work.us(tile, 1, replace(H200, sm_count=10**6)) >= bytes / H200.memory_rate * 1e6


def test_fewer_multiprocessors_take_longer() -> None:
    assert WORK.us(WARPGROUP, 1, with_sms(66)) > WORK.us(WARPGROUP, 1, H200)
