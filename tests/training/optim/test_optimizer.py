from __future__ import annotations

import pytest

from tilewright.core.errors import ConfigError
from tilewright.training.optim import SGD, AdamW, Lion


def test_learning_rates_are_numbers_or_functions() -> None:
    assert SGD(0.5).rate(7) == 0.5
    assert SGD(lambda step: 1 / step).rate(4) == 0.25


@pytest.mark.parametrize("given", [{"learning_rate": -1.0}, {"epsilon": float("inf")}])
def test_numbers_are_not_negative(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"optim\.number"):
        AdamW(**given)


@pytest.mark.parametrize("beta", [1.0, 1.5])
def test_shares_are_less_than_all(beta: float) -> None:
    with pytest.raises(ConfigError, match="beta2"):
        Lion(beta2=beta)
