"""The applications that are run on both engines: each has its program, answers are compared."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import apps

    return apps


def test_every_application_has_its_program(apps: ModuleType) -> None:
    programs = {path.stem.removeprefix("run_") for path in apps.HERE.glob("run_*.py")}
    assert programs == set(apps.APPS)


def test_answers_that_differ_are_found(apps: ModuleType) -> None:
    same = apps.differences({"a": ["x"]}, {"a": ["x"]})
    assert same == {"inputs": 1, "wrong": {}}
    other = apps.differences({"a": ["x"], "b": []}, {"a": ["y"], "c": []})
    assert other["inputs"] == 3
    assert other["wrong"] == {"a": (["x"], ["y"]), "b": ([], None), "c": (None, [])}
