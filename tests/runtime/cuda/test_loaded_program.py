from __future__ import annotations

from typing import Any

import pytest

from tests.models import mlp
from tests.runtime.cuda.fake_driver import FakeDriver
from tilewright.core.errors import ExecutionError
from tilewright.driver.compile import compile_container
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.runtime.cuda.loaded_program import LoadedProgram, check_device


class _Other:
    def capability(self) -> tuple[int, int]:
        return 8, 6

    def name(self) -> str:
        return "another GPU"


def test_code_for_another_architecture_is_refused() -> None:
    check_device("sm_80", _Other())
    for arch in ("sm_90a", "sm_89"):
        with pytest.raises(ExecutionError, match="another GPU is sm_86"):
            check_device(arch, _Other())


def test_what_fails_to_load_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options = make_options(target="cuda")
    driver = FakeDriver(lower(mlp(2), options))
    container = compile_container(mlp(2), options)
    loaded = LoadedProgram(driver, container)
    assert set(loaded.functions) == set(driver.names)
    loaded.close()

    def fails(*about: Any) -> None:
        raise ExecutionError("cuda.driver", "no")

    monkeypatch.setattr(driver, "upload", fails)
    with pytest.raises(ExecutionError):
        LoadedProgram(driver, container)
    assert {k: v for k, v in driver.live.items() if v} == {}
