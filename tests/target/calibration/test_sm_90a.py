from __future__ import annotations

from math import inf, isfinite

from tilewright.target.calibration.sm_90a import SIMT, TENSOR_CORE


def test_every_tile_has_a_time() -> None:
    for row in (*TENSOR_CORE.multistage, *TENSOR_CORE.persistent):
        assert isfinite(min(row.us_per_k_tile, row.us_per_k_tile_im2col))
        assert row.us_per_k_tile_im2col > min(row.us_per_k_tile, row.us_per_k_tile_im2col) or (
            row.us_per_k_tile == inf
        )


def test_larger_tiles_do_more_in_a_microsecond() -> None:
    alone = [row for row in TENSOR_CORE.multistage if row.wgmma and row.blocks_per_sm == 1]
    rates = {
        row.block_m * row.block_n: row.block_m * row.block_n / row.us_per_k_tile for row in alone
    }
    assert rates[128 * 256] > rates[128 * 128] > rates[64 * 64]


def test_no_simt_tile_reaches_the_peak() -> None:
    assert all(0 < row.rate < 1 for row in SIMT.tiles)
    assert all(row.k_major > 0 and row.transposed > 0 for row in SIMT.tiles)
