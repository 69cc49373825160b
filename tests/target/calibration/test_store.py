from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.core.config import override
from tilewright.core.errors import ConfigError
from tilewright.core.host.core_rates import CoreRates
from tilewright.target.calibration.store import (
    calibration_path,
    read_calibration,
    remove_calibration,
    write_calibration,
)

RATES = CoreRates(3e9, 2.0, 4.0, 100.0, 40.0, 10.0, 4.0, 9000.0)


def test_it_is_kept_and_removed(tmp_path: Path) -> None:
    with override(cache=True, cache_dir=tmp_path):
        assert read_calibration() is None
        assert not remove_calibration()
        assert write_calibration(RATES) == calibration_path()
        assert read_calibration() == RATES
        assert remove_calibration()
        assert read_calibration() is None


def test_without_a_cache() -> None:
    with override(cache=False):
        assert read_calibration() is None
        assert not remove_calibration()
        with pytest.raises(ConfigError, match=r"calibration\.no-cache"):
            write_calibration(RATES)


def test_another_machine_has_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with override(cache=True, cache_dir=tmp_path):
        write_calibration(RATES)
        monkeypatch.setattr(
            "tilewright.target.calibration.store.machine_identity", lambda: "another"
        )
        assert read_calibration() is None


@pytest.mark.parametrize("text", ["", "{}", '{"frequency": 1}'])
def test_a_broken_file(tmp_path: Path, text: str) -> None:
    with override(cache=True, cache_dir=tmp_path):
        write_calibration(RATES).write_text(text)
        with pytest.raises(ConfigError, match=r"calibration\.unreadable"):
            read_calibration()
