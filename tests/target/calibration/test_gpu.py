from __future__ import annotations

from dataclasses import fields

from tilewright.schedule.builtin.gpu.gemm.simt_tiles import SimtTile
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import TensorCoreTile
from tilewright.target.calibration.gpu import SimtTileRate, TensorCoreTileTime


def test_rows_have_the_names_of_tiles() -> None:
    for row, tile in ((TensorCoreTileTime, TensorCoreTile), (SimtTileRate, SimtTile)):
        assert {f.name for f in fields(row)} <= {f.name for f in fields(tile)}
