from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoke import invoke, succeed_json
from tilewright.cli.commands import doctor
from tilewright.core.config import override
from tilewright.core.host.core_rates import CoreRates
from tilewright.target.host import host


def test_this_machine_works() -> None:
    found = {row["what"]: row for row in succeed_json("doctor")}
    assert {"python", "llvmlite", "machine", "cache", "compile and run", "threads"} <= found.keys()
    assert "LLVM" in found["llvmlite"]["detail"]
    assert not [row for row in found.values() if row["status"] == "failed"]
    assert set(doctor.OPTIONAL) <= found.keys()


def test_what_is_broken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise ZeroDivisionError("no machine")

    monkeypatch.setattr(doctor, "CHECKS", (doctor._cache, broken, doctor._machine))
    (tmp_path / "file").write_text("")
    with override(cache_dir=tmp_path / "file" / "cache"):
        result = invoke("doctor")
    assert result.exit_code == 1
    assert "TW_CACHE=off" in result.stdout
    assert "ZeroDivisionError: no machine" in result.stdout
    assert "machine" in result.stdout


def test_missing_packages_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "pip install it"})
    monkeypatch.setattr(doctor, "CHECKS", (doctor._packages,))
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "pip install it" in result.stdout


def test_a_cache_that_is_off() -> None:
    with override(cache=False):
        assert [f.status for f in doctor._cache()] == ["missing"]


def test_roofs(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path):  # other tests are not to take these for the machine's
        found = {row["what"]: row for row in succeed_json("doctor", "--roofline")}
    assert found["f32, 1 threads"]["detail"] == "10.0 G operations/s in multiply-adds"
    assert "10.0 GB/s" in found["memory, 1 threads"]["detail"]
    assert "20 ns" in found["clock"]["detail"]


def test_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = CoreRates(3e9, 2.0, 4.0, 100.0, 40.0, 10.0, 4.0, 9000.0)
    monkeypatch.setattr("tilewright.driver.calibrate.fork_seconds", lambda: 1e-6)
    monkeypatch.setattr("tilewright.driver.calibrate.measure_core", lambda fork: rates)
    monkeypatch.setattr(doctor, "CHECKS", (doctor._calibration,))
    with override(cache=True, cache_dir=tmp_path):
        assert "built-in rates" in succeed_json("doctor")[0]["detail"]
        found = {row["what"]: row for row in succeed_json("doctor", "--calibrate", "--force")}
        assert "3.00 GHz, 2.0 FMA/cycle, latency 4.0" in found["calibration"]["detail"]
        assert "100.0/40.0/10.0/4.0 bytes/cycle" in succeed_json("doctor")[0]["detail"]
        reset = [succeed_json("doctor", "--reset-calibration")[1]["detail"] for _ in range(2)]
        assert [detail.partition(";")[0] for detail in reset] == ["removed", "there was none"]
        assert "built-in rates" in succeed_json("doctor")[0]["detail"]
    host.cache_clear()
