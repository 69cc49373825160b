"""Long sweeps: CI tries a sample of the parameters, `make slow` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, values: Iterable[Any], first: int = 0) -> list[Any]:
    """Parameters of which every `step`-th is tried in CI, from the `first` on."""
    return [
        value if n % step == first else pytest.param(value, marks=pytest.mark.slow)
        for n, value in enumerate(values)
    ]
