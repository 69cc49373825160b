"""How far results lie apart: outputs of two engines, or of a model before and after a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def named(outputs: Arrays | Sequence[Any], names: Iterable[str]) -> Arrays:
    """Outputs by name; those given in order take the names in order."""
    if isinstance(outputs, Mapping):
        return outputs
    return dict(zip(names, map(np.asarray, outputs), strict=True))


def relative_error(got: Arrays, wanted: Arrays) -> float:
    """The largest difference of any output, relative to that output's largest magnitude.

    Another shape, or a NaN or infinity on one side only, is an infinite error.
    """
    return max(
        (array_error(np.asarray(got[n]), np.asarray(w)) for n, w in wanted.items()), default=0.0
    )


def array_error(got: np.ndarray, wanted: np.ndarray) -> float:
    """`relative_error` of one array."""
    if got.shape != wanted.shape:
        return float("inf")
    wide = np.complex128 if "c" in (got.dtype.kind, wanted.dtype.kind) else np.float64
    a, b = got.astype(wide), wanted.astype(wide)
    both = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~both], b[~both], equal_nan=True):
        return float("inf")
    if not both.any():
        return 0.0
    scale = max(float(np.abs(b[both]).max()), float(np.finfo(np.float32).tiny))
    return float(np.abs(a[both] - b[both]).max()) / scale
