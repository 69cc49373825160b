"""The tolerance of a bisection, relative to the largest magnitude of a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.dtypes import from_numpy
from tilewright.core.numeric_error import array_error

# What reordered sums may change, by the precision that the compiler is allowed.
BY_PRECISION = {"f32": 1e-3, "bf16": 5e-2, "fp16": 2e-2, "tf32": 2e-2}
# What storing results in a narrow type may change besides.
BY_DTYPE = {"f16": 1e-2, "bf16": 5e-2}


@dataclass(frozen=True)
class Tolerance:
    """The difference that is allowed; one that the user gave holds for every type."""

    allowed: float
    given: bool = False

    def of(self, array: np.ndarray) -> float:
        """The difference that results of this type may have."""
        name = from_numpy(array.dtype).name
        return self.allowed if self.given else max(self.allowed, BY_DTYPE.get(name, 0.0))

    def excess(self, got: np.ndarray, wanted: np.ndarray) -> float:
        """How far two results differ if that is too far, else 0."""
        error = array_error(got, wanted)
        return error if error > self.of(wanted) else 0.0


def tolerance(given: float | None, precision: str) -> Tolerance:
    """What the user gave, or what fits the precision."""
    if given is not None:
        return Tolerance(given, given=True)
    return Tolerance(BY_PRECISION[precision])


def is_finite(array: np.ndarray) -> bool:
    """Whether an array has neither NaN nor infinities; whole numbers never have."""
    wide = array if array.dtype.kind in "fciub" else array.astype(np.float64)
    return bool(np.isfinite(wide).all())
