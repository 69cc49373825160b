"""How far the outputs of two engines lie apart."""

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
        (_array_error(np.asarray(got[n]), np.asarray(w)) for n, w in wanted.items()), default=0.0
    )


def _array_error(got: np.ndarray, wanted: np.ndarray) -> float:
    if got.shape != wanted.shape:
        return float("inf")
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~both], b[~both], equal_nan=True):
        return float("inf")
    if not both.any():
        return 0.0
    scale = max(float(np.abs(b[both]).max()), float(np.finfo(np.float32).tiny))
    return float(np.abs(a[both] - b[both]).max()) / scale
