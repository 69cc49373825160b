from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.invoke import fail
from tilewright.cli.commands.run_app import application, startup_folder

APP = "import sys, onnxruntime; print(onnxruntime.__name__, *sys.argv[1:])\n"
OURS = "tilewright.compat.onnxruntime"


def _run_app(*command: str, folder: Path) -> str:
    line = [sys.executable, "-m", "tilewright", "run-app", *command]
    root = Path(startup_folder()).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(folder)])}
    done = subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "command",
    [
        ("--", sys.executable, "app.py", "--flag", "value"),
        (sys.executable, "app.py", "--flag", "value"),
        ("--", "app.py", "--flag", "value"),
        ("--", "-m", "app", "--flag", "value"),
        ("--", "./script", "--flag", "value"),
    ],
)
def test_commands(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\n{APP}")
    script.chmod(0o755)
    assert _run_app(*command, folder=tmp_path) == f"{OURS} --flag value"


def test_the_exit_status_is_the_applications(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "tilewright", "run-app", "--", sys.executable, "-c", "exit(7)"]
    assert subprocess.run(line, check=False).returncode == 7


def test_a_command_that_is_not_there() -> None:
    text = fail("run-app", "--", "no-such-program", code="app.command")
    assert "no-such-program" in text


def test_a_file_that_can_run_itself_does(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP)
    assert application([str(file), "a"]) == [sys.executable, str(file), "a"]
    file.chmod(0o755)
    assert application([str(file), "a"]) == [str(file), "a"]
    assert application(["magika", "x"]) == ["magika", "x"]
