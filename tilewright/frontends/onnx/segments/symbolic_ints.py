"""Values that a segment needs as sizes: it is compiled for their symbols, not for their numbers.

A shape, the end of a range, a number of repetitions: what is made of them has a size that is a
symbol, and another number needs no other code. 0 and 1 are taken as they are, since they broadcast,
and so are negative numbers, which mean something else. The symbols get their values as all symbols
do, by the shape of an input: an array without elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.arith.expr import Expr, Var, const

# More numbers than a shape has, or larger ones than memory, are no sizes.
MOST_NUMBERS, MOST = 64, 2**31
# The rank of an array has a limit.
MOST_SYMBOLS = 16


@dataclass(frozen=True, eq=False)
class Sized:
    """The value of a small tensor of integers."""

    array: np.ndarray

    def form(self) -> tuple[int, ...]:
        """The numbers that are taken as they are, -1000 for every other."""
        return tuple(int(v) if _is_fixed(int(v)) else -1000 for v in self.array.flat)

    def elements(self, name: str) -> list[Expr]:
        """The elements as numbers and symbols, which are called after the value."""
        numbers = enumerate(map(int, self.array.flat))
        return [const(v) if _is_fixed(v) else Var(f"{name}_v{i}") for i, v in numbers]

    def places(self) -> tuple[int, ...]:
        """Where symbols stand."""
        return tuple(i for i, v in enumerate(map(int, self.array.flat)) if not _is_fixed(v))


def can_be_sizes(array: np.ndarray) -> bool:
    """Whether a value is a tensor of which a segment can take the elements for sizes."""
    if array.dtype.kind not in "iu" or array.size > MOST_NUMBERS:
        return False
    return len(Sized(array).places()) <= MOST_SYMBOLS


def carrier(array: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """An array without elements, whose shape has the numbers in some places of another one."""
    return np.empty((*(int(array.flat[i]) for i in places), 0), np.bool_)


def _is_fixed(value: int) -> bool:
    return not 2 <= value < MOST
