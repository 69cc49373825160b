"""Long sweeps: CI tries a sample of the parameters, `make slow` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of which every `step`-th is tried in CI."""
    return [
        value if n % step == 0 else pytest.param(value, marks=pytest.mark.slow)
        for n, value in enumerate(values)
    ]
