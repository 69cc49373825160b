"""What an optimizer is: how a parameter changes in a step, as a formula of a graph.

    SGD(0.1).update(w, dw, {}, [rate])  ->  w - rate * dw

What changes from step to step, as the learning rate may, are `numbers`: computed by the host in f64
and given to each run, so that all steps are one compiled graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from tilewright.core.errors import ConfigError
from tilewright.ir.types import TensorType
from tilewright.ops.traced_value import Value

Schedule = float | Callable[[int], float]
"""A learning rate, or what it is in each step; the first step is 1."""
Updated = tuple[Value, dict[str, Value]]
"""A parameter and its state after a step."""


@dataclass(frozen=True)
class Optimizer(ABC):
    """How parameters change in a step."""

    learning_rate: Schedule
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            if isinstance(given, float | int) and not 0 <= given < float("inf"):
                raise ConfigError(
                    "optim.number",
                    f"{type(self).__name__}: {field.name} is {given}",
                    help="it is a number of 0 or more",
                )

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        given = self.learning_rate
        return float(given(step) if callable(given) else given)

    @abstractmethod
    def numbers(self, step: int) -> tuple[float, ...]:
        """What `update` is given in a step, of which the first is 1."""

    def state(self, t: TensorType) -> dict[str, TensorType]:
        """What is kept beside a parameter of a type, by name; zeros before the first step."""
        return {}

    @abstractmethod
    def update(
        self, p: Value, dp: Value, state: Mapping[str, Value], numbers: Sequence[Value]
    ) -> Updated:
        """A parameter after a step, and its state, given the gradient by it."""


def check_shares(optimizer: Optimizer, **shares: float) -> None:
    """Shares of what was, as of running means, are from 0 up to 1 itself, which is not allowed."""
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ConfigError(
                "optim.number",
                f"{type(optimizer).__name__}: {name} is {share}",
                help="it is a number from 0 up to, not including, 1",
            )
