"""Model files that several commands are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import convnet, mlp, save
from tilewright.runtime.roofline import machine_roofline
from tilewright.runtime.roofline.roofline import Level, Roofline


@pytest.fixture
def mlp_file(tmp_path: Path) -> Path:
    """A model with the symbolic batch N."""
    return save(mlp("N"), tmp_path / "mlp.onnx")


@pytest.fixture
def conv_file(tmp_path: Path) -> Path:
    """A model of fixed shapes."""
    return save(convnet(1), tmp_path / "conv.onnx")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _known_roofline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A roofline that is neither measured nor one that other tests have left in their cache."""
    level = Level("memory", float("inf"), 1e10)

    def known(threads: int) -> Roofline:
        return Roofline(threads, {"f32": 1e10}, (level,), 20.0)

    monkeypatch.setattr(machine_roofline, "measure_roofline", known)
    monkeypatch.setattr(machine_roofline, "known_roofline", known)
