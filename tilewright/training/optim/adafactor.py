"""Adafactor (Shazeer, Stern: adaptive learning rates with sublinear memory cost).

Of a matrix the running mean of squared gradients is kept by rows and by columns only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.arith.expr import const
from tilewright.ir.types import TensorType
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.traced_value import Value
from tilewright.training.optim.optimizer import Optimizer, Schedule, Updated


@dataclass(frozen=True)
class Adafactor(Optimizer):
    """`p = p - rate * size * u / max(1, rms(u) / threshold)` with `u = g / sqrt(v)`.

    `v` is the running mean of `g * g`, which is renewed by `step ** decay`; `size` is the root
    mean square of `p`, at least `least`; `rate` is at most `1 / sqrt(step)`. `epsilon` is the least
    that `sqrt(v)` counts as, by default that of the numbers' type.
    """

    learning_rate: Schedule = 1e-2
    decay_exponent: float = 0.8
    threshold: float = 1.0
    epsilon: float | None = None
    least: float = 1e-3

    def numbers(self, step: int) -> tuple[float, ...]:
        """The share of what is new, the rate that it has at most, and what weights keep."""
        rate = self.rate(step)
        return step**-self.decay_exponent, min(rate, step**-0.5), 1 - rate * self.weight_decay

    def state(self, t: TensorType) -> dict[str, TensorType]:
        """Means by rows and by columns, of the last two axes; of a vector by elements."""
        if t.rank < 2:
            return {"square": t}
        rows = replace(t, shape=(*t.shape[:-1], const(1)))
        columns = replace(t, shape=(*t.shape[:-2], const(1), t.shape[-1]))
        return {"rows": rows, "columns": columns}

    def update(
        self, p: Value, dp: Value, state: Mapping[str, Value], numbers: Sequence[Value]
    ) -> Updated:
        """A parameter after a step, and its state, given the gradient by it."""
        share, rate, kept = numbers
        every = tuple(range(len(p.shape)))
        size = _mean(p * p, every).apply("sqrt").apply("max", self.least)
        p = p * kept if self.weight_decay else p
        epsilon = self.epsilon or float(np.finfo(p.dtype.numpy).eps)
        square, after = self._squares(dp * dp, state, share, epsilon)
        by = dp * square.apply("max", epsilon**2).apply("rsqrt")
        excess = _mean(by * by, every).apply("sqrt") * (1 / self.threshold)
        return p - by * (rate * size / excess.apply("max", 1.0)), after

    def _squares(
        self, new: Value, state: Mapping[str, Value], share: Value, epsilon: float
    ) -> tuple[Value, dict[str, Value]]:
        """The running mean of squares, and what is kept of it."""
        if "square" in state:
            square = _towards(state["square"], new, share)
            return square, {"square": square}
        rank = len(new.shape)
        rows = _towards(state["rows"], _mean(new, (rank - 1,)), share)
        columns = _towards(state["columns"], _mean(new, (rank - 2,)), share)
        whole = _mean(rows, (rank - 2,)).apply("max", epsilon)
        return rows * columns / whole, {"rows": rows, "columns": columns}


def _mean(x: Value, axes: Sequence[int]) -> Value:
    return x.apply("reduce_mean", attrs=ReduceAttrs(tuple(axes), keepdims=True)) if axes else x


def _towards(old: Value, new: Value, share: Value) -> Value:
    return old + (new - old) * share
