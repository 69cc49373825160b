from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.fuzz.models import case_of
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import Error, FrontendError, InternalError
from tilewright.fuzz import robustness_check
from tilewright.fuzz.campaign import check_result
from tilewright.fuzz.robustness_check import check_robustness
from tilewright.fuzz.sandbox import run_isolated
from tilewright.runtime.binding import Port


def _model(folder: Path, op: str) -> Path:
    case = case_of([helper.make_node(op, ["x"], ["y"])], {"x": np.ones(3, np.float32)}, ["y"])
    path = folder / "inside" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(case.model.SerializeToString())
    return path


def _kind(path: Path) -> str:
    return check_result(run_isolated(lambda: check_robustness(path, {}).as_json())).kind


def test_valid_and_refused_models_are_fine(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert _kind(_model(tmp_path, "Relu")) == "right"
    assert _kind(_model(tmp_path / "other", "Nope")) == "refused"


def _loop(folder: Path, count: int | None) -> Path:
    """A model that counts in a sequence, which only the host can do."""
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (seq(int64[]) s, int64 n) => (seq(int64[]) y) {
            y = Loop (COUNT, , s) <body = b (int64 i, bool c, seq(int64[]) a)
                => (bool d, seq(int64[]) e) { d = Identity (c)  e = SequenceInsert (a, i) }>
        }"""
    model = onnx.parser.parse_model(text.replace("COUNT", "n" if count is not None else ""))
    if count is not None:
        model.graph.initializer.append(numpy_helper.from_array(np.array(count), "n"))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_loop_that_says_that_it_has_no_end_is_not_run(tmp_path: Path) -> None:
    assert not robustness_check._is_endless(_loop(tmp_path, 3), {})
    assert robustness_check._is_endless(_loop(tmp_path, 1 << 40), {})
    assert robustness_check._is_endless(_loop(tmp_path, None), {})


def test_inputs_have_the_declared_types_and_shapes() -> None:
    class Model:
        inputs = (Port("x", I64, (2, 3)), Port("y", F32, ("N",)))

    given = robustness_check._given(Model(), {"x": np.array([1.5, 2.5])})
    assert given is not None
    assert given["x"].tolist() == [[1, 2, 1], [2, 1, 2]]
    assert given["x"].dtype == np.int64
    assert given["y"].tolist() == [0, 0, 0]
    Model.inputs = (Port("x", F32, (1 << 20,)),)  # type: ignore[assignment]
    assert robustness_check._given(Model(), {}) is None


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
    monkeypatch.setattr(robustness_check, "compile", fails)
    assert _kind(path) == kind


def test_files_outside_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _model(tmp_path, "Relu")
    (tmp_path / "secret").write_text("x")

    def curious(*_: object, **__: object) -> None:
        (tmp_path / "secret").read_text()
        raise Error("run.x", "x")

    monkeypatch.setattr(robustness_check, "compile", curious)
    assert _kind(path) == "outside"
