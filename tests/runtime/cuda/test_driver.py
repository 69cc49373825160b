from __future__ import annotations

import shutil

import pytest

from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import driver
from tilewright.runtime.cuda.driver import Driver, open_driver


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARIES", ("libnothing.so.1",))
    driver._load.cache_clear()
    try:
        with pytest.raises(ExecutionError, match="no NVIDIA driver"):
            Driver()
    finally:
        driver._load.cache_clear()


@pytest.mark.gpu
def test_bad_code_is_told_with_what_the_assembler_says() -> None:
    gpu = open_driver()
    gpu.enter()
    with pytest.raises(ExecutionError, match="loading kernel broken") as caught:
        gpu.load_module(b".version 8.0\n.target sm_90\n.nonsense\n\0", "broken")
    assert caught.value.notes
    assert gpu.name()
    assert gpu.capability() >= (7, 0)
    assert shutil.which("nvidia-smi")
