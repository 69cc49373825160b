from __future__ import annotations

import pytest

from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.text import parse_expr


@pytest.mark.parametrize(
    ("text", "lanes"),
    [
        ("ramp(3, 2, 3)", (3, 5, 7)),
        ("ramp(0, 1, 4) // 2 * 3", (0, 0, 3, 3)),
        ("(ramp(0, 1, 4) - 2) % 3", (1, 2, 0, 1)),
        ("max(min(ramp(0, 1, 4), 2), 1) + 5", (6, 6, 7, 7)),
        ("2 + ramp(0, 1, 4) < 4", (1, 1, 0, 0)),
        ("(ramp(0, 1, 4) < 3) & (0 < ramp(0, 1, 4))", (0, 1, 1, 0)),
        ("7", (7,)),
        ("ramp(i, 1, 4)", None),
        ("ramp(0, 1, 4) < i", None),
        ("ramp(0, 1, 4) // 0", None),
    ],
)
def test_elements(text: str, lanes: tuple[int, ...] | None) -> None:
    assert known_lanes(parse_expr(text)) == lanes
