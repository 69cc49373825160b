from __future__ import annotations

from tilewright.bench import wait_idle
from tilewright.bench.wait_idle import wait_until_idle


def test_the_timeout_ends(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(wait_idle, "IDLE", -1.0)
    assert wait_until_idle(0.05) == 0
    assert wait_until_idle(-1) == 0
    monkeypatch.setattr(wait_idle, "IDLE", 1e9)
    assert wait_until_idle(5) > 4
