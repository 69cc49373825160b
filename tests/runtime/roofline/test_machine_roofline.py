from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.core.config import override
from tilewright.runtime.roofline import machine_roofline as module
from tilewright.runtime.roofline.machine_roofline import machine_roofline
from tilewright.runtime.roofline.roofline import Level, Roofline

ROOFLINE = Roofline(2, {"f32": 1e11}, (Level("memory", float("inf"), 1e10),), 30.0)


def test_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(threads: int) -> Roofline:
        measured.append(threads)
        return ROOFLINE

    monkeypatch.setattr(module, "measure_roofline", measure)
    shown: list[str] = []
    with override(cache=True, cache_dir=tmp_path):
        assert machine_roofline(2, show=shown.append) == ROOFLINE
        assert machine_roofline(2, show=shown.append) == ROOFLINE
        assert measured == [2]
        machine_roofline(2, again=True)
        machine_roofline(1)
    assert measured == [2, 2, 1]
    assert len(shown) == 1
    with override(cache=False):
        assert machine_roofline(2) == ROOFLINE
