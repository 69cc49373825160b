from __future__ import annotations

import threading
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from tests.models import mlp, random_inputs, reference, save
from tilewright.cli import bench_engine
from tilewright.cli.bench_engine import ENGINES, Loaded, Task, serve, timed_runs
from tilewright.core.errors import Error


@pytest.fixture
def task(tmp_path: Path) -> Task:
    inputs = random_inputs(mlp("N"), {"N": 2})
    return Task(save(mlp("N"), tmp_path / "m.onnx"), inputs, 1, {"N": 2})


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_right_answer(engine: str, task: Task) -> None:
    pytest.importorskip(engine)
    found = ENGINES[engine](task)(task.inputs)["probabilities"]
    expected = reference(mlp("N"), task.inputs)["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _answers(engine: str, task: Task, turns: int, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the process would send, here from a thread."""
    monkeypatch.setattr(bench_engine.signal, "signal", lambda *_: None)
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve, args=(engine, task, theirs))
    thread.start()
    answers = [ours.recv()]
    for _ in range(turns):
        ours.send(0.0)
        answers.append(ours.recv())
    ours.close()
    thread.join(timeout=10)
    assert not thread.is_alive()
    return answers


def test_a_process_answers_turn_by_turn(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, *turns = _answers("tilewright", task, 2, monkeypatch)
    assert isinstance(loaded, Loaded)
    assert [len(t) for t in turns] == [1, 1]  # type: ignore[arg-type]


def test_errors_are_sent(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    task.model.write_bytes(b"nonsense")
    (ours,) = _answers("tilewright", task, 0, monkeypatch)
    assert isinstance(ours, Error)
    assert ours.code == "onnx.damaged"
    pytest.importorskip("onnxruntime")
    (theirs,) = _answers("onnxruntime", task, 0, monkeypatch)
    assert isinstance(theirs, Error)
    assert "onnxruntime cannot run the model" in str(theirs)


def test_timed_runs() -> None:
    calls: list[int] = []
    assert len(timed_runs(lambda: calls.append(1), 0.0)) == 1
    assert len(timed_runs(lambda: calls.append(1), 0.01)) > 1
