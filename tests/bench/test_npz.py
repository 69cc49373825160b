from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewright.bench.npz import write_npz


def test_names_that_savez_would_take_for_its_own(tmp_path: Path) -> None:
    arrays = {"file": np.arange(3), "a/b": np.float32(2.5), "allow_pickle": np.zeros((0, 2))}
    write_npz(tmp_path / "x.npz", arrays)
    read = dict(np.load(tmp_path / "x.npz"))
    assert read.keys() == arrays.keys()
    assert all(np.array_equal(read[name], value) for name, value in arrays.items())
