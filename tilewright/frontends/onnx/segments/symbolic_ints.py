"""Integer tensors whose elements a segment uses as sizes: they become symbolic dimensions.

A shape, the end of a range or a trip count determines dimensions only, so that one compiled segment
serves all values. Specialized are 0 and 1, which broadcast, and negative numbers, which have
special meanings. A symbol gets its value as every dynamic dimension does, from the shape of an
input: the shape carrier, an array without elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.arith.expr import Expr, Var, const

# A tensor with more elements than a shape, or larger ones than memory, holds no sizes.
MAX_ELEMENTS, MAX_SIZE = 64, 2**31
# A shape carrier has one axis for each symbol, and the rank of an array has a limit.
MAX_SYMBOLS = 16


@dataclass(frozen=True, eq=False)
class SymbolicInts:
    """The value of a small integer tensor, its elements taken as symbols where possible."""

    array: np.ndarray

    def form(self) -> tuple[int, ...]:
        """The specialized elements, and -1000 for each symbol: equal forms share a segment."""
        return tuple(int(v) if _is_fixed(int(v)) else -1000 for v in self.array.flat)

    def elements(self, name: str) -> list[Expr]:
        """The elements as numbers and symbols, which are named after the value."""
        numbers = enumerate(map(int, self.array.flat))
        return [const(v) if _is_fixed(v) else Var(f"{name}_v{i}") for i, v in numbers]

    def places(self) -> tuple[int, ...]:
        """The positions of the symbols."""
        return tuple(i for i, v in enumerate(map(int, self.array.flat)) if not _is_fixed(v))


def can_be_sizes(array: np.ndarray) -> bool:
    """Whether a segment can take the elements of a tensor as sizes."""
    if array.dtype.kind not in "iu" or array.size > MAX_ELEMENTS:
        return False
    return len(SymbolicInts(array).places()) <= MAX_SYMBOLS


def shape_carrier(array: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """An array without elements, whose shape holds the elements of `array` at `places`."""
    return np.empty((*(int(array.flat[i]) for i in places), 0), np.bool_)


def _is_fixed(value: int) -> bool:
    return not 2 <= value < MAX_SIZE
