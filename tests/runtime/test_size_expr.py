from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.runtime.size_expr import OPERATIONS, evaluate, evaluate_text, parse


@for_each(
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
def test_values_of_text(text: str, value: int) -> None:
    assert evaluate_text(text, {"N": 4, "S": 5}) == value


@for_each("text", ["M", "N // 0", "N +", "__import__('os')", "f(N)", "1.5", "N ** 2"])
def test_what_is_not_understood(text: str) -> None:
    assert evaluate_text(text, {"N": 4}) is None


def test_text_is_parsed_to_operations() -> None:
    assert parse("select(N < 2, 1, (S + 7) // 8)") == [
        "select",
        ["lt", "N", 2],
        1,
        ["floordiv", ["add", "S", 7], 8],
    ]


def test_values_of_trees() -> None:
    sizes = {"N": 10, "size.0": 3}
    assert evaluate(7, sizes) == 7
    assert evaluate("size.0", sizes) == 3
    assert evaluate(["floordiv", ["add", "N", 255], 256], sizes) == 1
    assert evaluate(["select", ["lt", "N", 5], 1, ["neg", 2]], sizes) == -2
    assert evaluate(["not", ["and", True, ["le", 3, "N"]]], sizes) == 0
    with pytest.raises(KeyError):
        evaluate("M", sizes)
    assert "select" in OPERATIONS
