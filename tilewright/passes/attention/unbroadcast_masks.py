"""Undo the broadcast of masks that are the same for every query or every head.

    %every: bool[1, 1, 128, 128]                         constant, true everywhere
    %1: bool[8, 1, 128, 128] = and(%every, %keys)   →    %1: bool[8, 1, 1, 128]
    %2: f32[8, 1, 128, 128] = where(%1, 0.0, -inf)       %2: f32[8, 1, 1, 128]

Exporters expand padding masks to all queries. Attention broadcasts a mask of one row, which takes
128 times less memory here.
"""

from __future__ import annotations

import numpy as np

from tilewright.passes.rewriter import Rewriter

# Operators whose results are the same wherever their operands are.
POINTWISE = frozenset(
    "add and cast equal greater greater_or_equal less less_or_equal mul not or sub where".split()
)


class Masks:
    """Masks of a graph that were narrowed already: layers share them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def narrowed(self, g: Rewriter, value: str) -> str:
        """The value with one row in place of equal ones; itself where there are none."""
        if value not in self._known:
            self._known[value] = self._made(g, value)
        return self._known[value]

    def _made(self, g: Rewriter, value: str) -> str:
        data = g.constant_data(value)
        if data is not None:
            narrow = one_row(data)
            return value if narrow is data else g.constant(narrow)
        n = g.producer(value)
        if n is None or (n.op not in POINTWISE and n.op != "expand"):
            return value
        if n.op == "expand":
            # The last dimension, the keys, is to stay.
            source = n.inputs[0]
            shape = g.type(source).shape
            kept = bool(shape) and shape[-1] is n.type.shape[-1]
            return self.narrowed(g, source) if kept else value
        inputs = [self.narrowed(g, v) for v in n.inputs]
        return value if inputs == list(n.inputs) else g.add(n.op, *inputs, attrs=n.attrs)


def one_row(data: np.ndarray) -> np.ndarray:
    """A constant cut to one along dimensions, but for the last, along which it is the same."""
    for axis in range(data.ndim - 1):
        if data.shape[axis] > 1:
            first = data.take([0], axis)
            data = first if (data == first).all() else data
    return data
