from __future__ import annotations

import pytest

from tilewright.runtime.roofline import measure as module
from tilewright.runtime.roofline.measure import measure_roofline


def test_a_machine_has_roofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPEATS", 2)
    monkeypatch.setattr(module, "MEMORY_BYTES", 1 << 20)
    monkeypatch.setattr(module, "READ_BYTES", 1 << 20)
    monkeypatch.setattr(module, "cache_sizes", lambda: {1: 1 << 14, 2: 1 << 16, 3: 1 << 18})
    roofline = measure_roofline(2)
    assert roofline.threads == 2
    assert roofline.flops_per_second["f32"] > 1e8
    assert [level.name for level in roofline.levels] == ["L1", "L2", "L3", "memory"]
    assert [level.bytes for level in roofline.levels[:3]] == [1 << 15, 1 << 17, 1 << 18]
    assert all(level.bytes_per_second > 1e7 for level in roofline.levels)
    assert 1 < roofline.clock_ns < 1e5
