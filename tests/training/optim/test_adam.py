from __future__ import annotations

import torch

from tests.training.optim.stepped import check
from tilewright.training.optim import Adam, AdamW


def test_steps_are_those_of_torch() -> None:
    check(Adam(0.05), lambda p: torch.optim.Adam(p, 0.05))
    check(
        Adam(0.05, 0.3, beta1=0.5, beta2=0.7, epsilon=1e-3),
        lambda p: torch.optim.Adam(p, 0.05, (0.5, 0.7), 1e-3, 0.3),
    )


def test_decoupled_steps_are_those_of_torch() -> None:
    check(AdamW(0.05), lambda p: torch.optim.AdamW(p, 0.05))
    check(AdamW(0.05, 0.3), lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.3))
    check(AdamW(0.05, 0.0), lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.0))


def test_a_schedule_of_the_learning_rate() -> None:
    def scheduled(p: list[torch.Tensor]) -> torch.optim.Optimizer:
        optimizer = torch.optim.AdamW(p, 1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 0.1 / (i + 1))
        optimizer.register_step_post_hook(lambda *_: schedule.step())
        return optimizer

    check(AdamW(lambda step: 0.1 / step), scheduled)
