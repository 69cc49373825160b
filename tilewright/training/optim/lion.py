"""Lion (Chen and others: Symbolic discovery of optimization algorithms)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.ir.types import TensorType
from tilewright.ops.traced_value import Value
from tilewright.training.optim.optimizer import Optimizer, Schedule, Updated, check_shares


@dataclass(frozen=True)
class Lion(Optimizer):
    """A step of one size in each direction: `p = p - rate * (sign(c) + weight_decay * p)`.

    `c` is `beta1 * m + (1 - beta1) * g`, and `m` the running mean of `g` by `beta2`.
    """

    learning_rate: Schedule = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, beta1=self.beta1, beta2=self.beta2)

    def numbers(self, step: int) -> tuple[float, ...]:
        """The learning rate."""
        return (self.rate(step),)

    def state(self, t: TensorType) -> dict[str, TensorType]:
        """The running mean of the gradient."""
        return {"mean": t}

    def update(
        self, p: Value, dp: Value, state: Mapping[str, Value], numbers: Sequence[Value]
    ) -> Updated:
        """A parameter after a step, and its state, given the gradient by it."""
        m = state["mean"]
        by = (m * self.beta1 + dp * (1 - self.beta1)).apply("sign")
        if self.weight_decay:
            by = by + p * self.weight_decay
        return p - by * numbers[0], {"mean": m * self.beta2 + dp * (1 - self.beta2)}
