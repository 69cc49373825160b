"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.core.errors import ConfigError
from tilewright.ir.types import TensorType
from tilewright.ops.traced_value import Value
from tilewright.training.optim.optimizer import Optimizer, Updated, check_shares


@dataclass(frozen=True)
class SGD(Optimizer):
    """`v = momentum * v + g; p = p - rate * v`, where `g` has `weight_decay * p` added.

    With `nesterov` the step is by `g + momentum * v`.
    """

    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, momentum=self.momentum)
        if self.nesterov and not self.momentum:
            raise ConfigError("optim.nesterov", "SGD: nesterov without momentum", help="give one")

    def numbers(self, step: int) -> tuple[float, ...]:
        """The learning rate."""
        return (self.rate(step),)

    def state(self, t: TensorType) -> dict[str, TensorType]:
        """The running sum of gradients."""
        return {"momentum": t} if self.momentum else {}

    def update(
        self, p: Value, dp: Value, state: Mapping[str, Value], numbers: Sequence[Value]
    ) -> Updated:
        """A parameter after a step, and its state, given the gradient by it."""
        g = dp + p * self.weight_decay if self.weight_decay else dp
        if not self.momentum:
            return p - g * numbers[0], {}
        v = state["momentum"] * self.momentum + g
        by = g + v * self.momentum if self.nesterov else v
        return p - by * numbers[0], {"momentum": v}
