from __future__ import annotations

import pytest
import torch

from tests.training.optim.stepped import check
from tilewright.core.errors import ConfigError
from tilewright.training.optim import SGD


def test_steps_are_those_of_torch() -> None:
    check(SGD(0.1), lambda p: torch.optim.SGD(p, 0.1))
    check(SGD(0.1, weight_decay=0.2), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.2))
    check(SGD(0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))
    check(
        SGD(0.1, 0.2, momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.2),
    )


def test_nesterov_is_a_kind_of_momentum() -> None:
    with pytest.raises(ConfigError, match=r"optim\.nesterov"):
        SGD(0.1, nesterov=True)
