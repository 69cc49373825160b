from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright.core.worker.python_command import can_start_python, python_command


def test_the_command_runs_main_with_the_packages_of_this_process() -> None:
    command = python_command("tilewright.codegen.objects.worker")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"{}\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("executable", "starts"),
    [("/usr/bin/python3.11", True), ("", False), (None, False), ("/usr/bin/blender", False)],
)
def test_only_python_is_started(
    executable: str | None, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert can_start_python() == starts


def test_a_frozen_program_is_not_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_start_python()
