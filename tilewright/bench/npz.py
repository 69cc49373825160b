"""Arrays by name in one file; `np.load` reads it."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file; unlike `np.savez`, whose own arguments have names too, any name will do."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(data), allow_pickle=False)
