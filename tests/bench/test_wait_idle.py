from __future__ import annotations

from tilewright.bench import wait_idle
from tilewright.bench.wait_idle import wait_until_quiet


def test_patience_ends(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(wait_idle, "QUIET", -1.0)
    assert wait_until_quiet(0.05) == 0
    assert wait_until_quiet(-1) == 0
    monkeypatch.setattr(wait_idle, "QUIET", 1e9)
    assert wait_until_quiet(5) > 4
