from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.fuzz.models import case_of
from tilewright.core.errors import Error, FrontendError, InternalError
from tilewright.fuzz import hostile
from tilewright.fuzz.campaign import verdict_of
from tilewright.fuzz.hostile import check_hostile
from tilewright.fuzz.isolate import run_isolated


def _model(folder: Path, op: str) -> Path:
    case = case_of([helper.make_node(op, ["x"], ["y"])], {"x": np.ones(3, np.float32)}, ["y"])
    path = folder / "inside" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(case.model.SerializeToString())
    return path


def _kind(path: Path) -> str:
    return verdict_of(run_isolated(lambda: check_hostile(path, {}).as_json())).kind


def test_valid_and_refused_models_are_fine(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert _kind(_model(tmp_path, "Relu")) == "right"
    assert _kind(_model(tmp_path / "other", "Nope")) == "refused"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyError("x"), "internal"),
        (InternalError("a.b", "x"), "internal"),
        (FrontendError("onnx.node", "x"), "unlocated"),
        (MemoryError(), "memory"),
    ],
)
def test_other_ends_are_findings(
    error: Exception, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    path = _model(tmp_path, "Relu")
    monkeypatch.setattr(hostile, "compile", fails)
    assert _kind(path) == kind


def test_files_outside_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _model(tmp_path, "Relu")
    (tmp_path / "secret").write_text("x")

    def curious(*_: object, **__: object) -> None:
        (tmp_path / "secret").read_text()
        raise Error("run.x", "x")

    monkeypatch.setattr(hostile, "compile", curious)
    assert _kind(path) == "outside"
