from __future__ import annotations

import os

from tilewright.bench import wait_idle
from tilewright.bench.wait_idle import busy_seconds, own_seconds, wait_until_quiet


def test_seconds_only_grow() -> None:
    busy, own = busy_seconds(), own_seconds(os.getpid())
    sum(range(300_000))
    assert busy_seconds() >= busy > 0
    assert own_seconds(os.getpid()) >= own
    assert own_seconds(2**30) == 0  # nobody


def test_patience_ends(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(wait_idle, "QUIET", -1.0)
    assert wait_until_quiet(0.05) == 0
    assert wait_until_quiet(-1) == 0
    monkeypatch.setattr(wait_idle, "QUIET", 1e9)
    assert wait_until_quiet(5) > 4
