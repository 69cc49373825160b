from __future__ import annotations

import pytest

from tilewright.runtime.size_expr import formula_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("N * 64 + S", 261),
        ("(N + 7) // 8 - -1", 2),
        ("min(N, S) + max(N, 2) % 3", 5),
        ("select(N < 2, 1, S)", 5),
        ("select(N == 4, 1, S)", 1),
        ("-S / 2 + S / N", -1),
        ("rem(-S, 3)", -2),
    ],
)
def test_values(text: str, value: int) -> None:
    assert formula_value(text, {"N": 4, "S": 5}) == value


@pytest.mark.parametrize(
    "text", ["M", "N // 0", "N +", "__import__('os')", "f(N)", "1.5", "N ** 2"]
)
def test_what_is_not_understood(text: str) -> None:
    assert formula_value(text, {"N": 4}) is None
