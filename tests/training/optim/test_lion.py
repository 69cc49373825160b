from __future__ import annotations

from typing import Any

import torch

from tests.training.optim.stepped import check
from tilewright.training.optim import Lion


class TorchLion(torch.optim.Optimizer):
    """As its authors write it."""

    def __init__(self, p: list[torch.Tensor], rate: float, decay: float) -> None:
        super().__init__(p, {})
        self.rate, self.decay = rate, decay

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for p in self.param_groups[0]["params"]:
            m = self.state[p].setdefault("m", torch.zeros_like(p))
            p.mul_(1 - self.rate * self.decay)
            p.add_((m * 0.9 + p.grad * 0.1).sign(), alpha=-self.rate)
            m.mul_(0.99).add_(p.grad, alpha=1 - 0.99)


def test_steps() -> None:
    check(Lion(0.05), lambda p: TorchLion(p, 0.05, 0.0))
    check(Lion(0.05, 0.3), lambda p: TorchLion(p, 0.05, 0.3))
