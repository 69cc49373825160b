"""Adam (Kingma, Ba: Adam, a method for stochastic optimization), and AdamW (Loshchilov, Hutter)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.ir.types import TensorType
from tilewright.ops.traced_value import Value
from tilewright.training.optim.optimizer import Optimizer, Schedule, Updated, check_shares


@dataclass(frozen=True)
class Adam(Optimizer):
    """`p = p - rate * m / (sqrt(v) + epsilon)`, `m` and `v` running means of `g` and `g * g`.

    Both begin with 0, for which they are corrected. `g` has `weight_decay * p` added.
    """

    learning_rate: Schedule = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, beta1=self.beta1, beta2=self.beta2)

    def numbers(self, step: int) -> tuple[float, ...]:
        """The rate and the root of `v` as they are corrected, and what weights keep."""
        rate = self.rate(step)
        root = (1 - self.beta2**step) ** 0.5
        return rate / (1 - self.beta1**step), root, 1 - rate * self.weight_decay

    def state(self, t: TensorType) -> dict[str, TensorType]:
        """Running means of the gradient and of its square."""
        return {"mean": t, "square": t}

    def update(
        self, p: Value, dp: Value, state: Mapping[str, Value], numbers: Sequence[Value]
    ) -> Updated:
        """A parameter after a step, and its state, given the gradient by it."""
        rate, root, kept = numbers
        p, g = self._decayed(p, dp, kept)
        mean = state["mean"] * self.beta1 + g * (1 - self.beta1)
        square = state["square"] * self.beta2 + g * g * (1 - self.beta2)
        width = square.apply("sqrt") / root + self.epsilon
        return p - rate * mean / width, {"mean": mean, "square": square}

    def _decayed(self, p: Value, g: Value, kept: Value) -> tuple[Value, Value]:
        """The parameter and its gradient with the decay of weights."""
        return p, (g + p * self.weight_decay if self.weight_decay else g)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam where weights decay by themselves: `p` becomes `p * (1 - rate * weight_decay)` first."""

    weight_decay: float = 1e-2

    def _decayed(self, p: Value, g: Value, kept: Value) -> tuple[Value, Value]:
        return (p * kept if self.weight_decay else p), g
