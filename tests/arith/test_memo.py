from __future__ import annotations

import pytest

from tilewright.arith import memo
from tilewright.arith.memo import Memo


def test_keeps_and_returns() -> None:
    table: Memo[str, int] = Memo()
    assert table.keep("a", 1) == 1
    assert table.get("a") == 1
    assert table.get("b") is None


def test_starts_anew_when_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "LIMIT", 3)
    table: Memo[int, int] = Memo()
    for n in range(10):
        table.keep(n, n)
        assert len(table) <= 3
    assert table[9] == 9
