"""Arrays drawn at random, for a model to be run on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.dtypes import F8E8M0, STRING, DType

# What random texts are made of.
TEXTS = ("", "a", "b", "ab", "tile wright")


def random_array(dtype: DType, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Normally distributed numbers; integers are 0 or 1, valid indices almost anywhere."""
    if dtype.is_float:
        values = rng.standard_normal(shape)
        return (np.abs(values) if dtype == F8E8M0 else values).astype(dtype.numpy)
    if dtype == STRING:
        return np.array(TEXTS, object)[rng.integers(0, len(TEXTS), shape)]
    return rng.integers(0, 2, shape).astype(dtype.numpy)
