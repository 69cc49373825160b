from __future__ import annotations

import pytest

from tilewright.core.host import cpu_features
from tilewright.core.host.cpu_features import LINUX_FEATURES, linux_features, linux_flags


def test_names_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_features, "linux_flags", lambda: ("asimdhp", "asimd", "evtstrm", "pni"))
    assert linux_features() == {"fullfp16", "neon", "fp-armv8", "sse3"}


def test_what_linux_says_here_is_known_or_its_own() -> None:
    translated = {name for flag in linux_flags() for name in LINUX_FEATURES.get(flag, ())}
    assert linux_features() == translated
