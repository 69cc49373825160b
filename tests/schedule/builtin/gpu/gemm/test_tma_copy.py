from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import (
    dense,
    grouped_first,
    on_threads,
    the_kernel,
    tiles,
)


@for_each(("k", "tma"), [(1400, False), (1480, True)])
def test_no_tile_begins_behind_a_row(k: int, tma: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMA would find the next row there: of four parts of six k-tiles, the last has four or six."""
    grouped_first(monkeypatch)
    func, scheduled = the_kernel(dense(40, 40, k, order="nt"))
    assert any("tma_load" in t.intrinsic for t in tiles(scheduled)) == tma
    if not tma:
        on_threads(func, scheduled, {})
