from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.invoke import invoke, succeed
from tilewright.cli import main
from tilewright.core.errors import ConfigError


def _run(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_help_imports_no_compiler() -> None:
    script = (
        "import sys\n"
        "from tilewright.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'onnx', 'llvmlite', 'tilewright.driver', 'tilewright.ir', 'rich'}\n"
        "sys.exit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "compile" in done.stdout


def test_help_names_every_command() -> None:
    text = succeed("--help")
    assert all(name in text for name in main.COMMANDS)
    for name in main.COMMANDS:
        assert "Usage: tilewright" in succeed(name, "--help")


def test_version() -> None:
    assert "0.1" in succeed("--version")


def test_unknown_command_and_option() -> None:
    for args in (["compiel"], ["list", "ops", "--nope"], ["list", "cats"], ["compile"]):
        result = invoke(*args)
        assert result.exit_code == 2
        assert "Error:" in result.stderr


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ConfigError("a.b", "wrong", help="do right"), 1, "ConfigError[a.b]: wrong\n  help: do"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (
            ZeroDivisionError("by zero\nmore"),
            1,
            "internal error: ZeroDivisionError: by zero\n  help",
        ),
        (MemoryError(), 1, "error: not enough memory"),
        (OSError(28, "No space left on device"), 1, "error: No space left on device"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_what_is_raised(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise error

    assert main.guarded(command, debug=False) == status
    assert capsys.readouterr().err.startswith(text)


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    for args in (
        ["--debug", "run", tmp_path / "no.onnx"],
        ["run", tmp_path / "no.onnx", "--debug"],
    ):
        result = invoke(*args)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr


def test_debug_after_a_double_dash_is_an_argument() -> None:
    assert main._without_debug(["a", "--debug", "--", "--debug"]) == (["a", "--", "--debug"], True)
    assert main._without_debug(["a"]) == (["a"], False)


def test_a_process(tmp_path: Path) -> None:
    done = _run("run", str(tmp_path / "missing.onnx"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("FrontendError[onnx.")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_to_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", "list", "switches"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_a_reader_that_stops_reading() -> None:
    command = f"{sys.executable} -m tilewright list errors | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
