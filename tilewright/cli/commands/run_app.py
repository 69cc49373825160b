"""`tilewright run-app`: an unchanged application of ONNX Runtime runs on Tilewright."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tilewright.core.config import inherited_environment
from tilewright.core.errors import ConfigError


@click.command(
    "run-app",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_app_command(command: Sequence[str]) -> None:
    """Run COMMAND, its `import onnxruntime` giving Tilewright.

    COMMAND is a program with its arguments (`python app.py`, an installed script), the name of a
    Python file, or `-m MODULE`; the latter two run with the Python that runs this. Processes that
    it starts are served as well.
    """
    line = application(command)
    environment = inherited_environment()
    known = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [startup_folder(), known]))
    sys.stdout.flush()
    try:
        os.execvpe(line[0], line, environment)
    except OSError as error:
        raise ConfigError(
            "app.command",
            f"cannot run {line[0]}: {error.strerror}",
            help="give a program and its arguments: tilewright run-app -- python app.py",
        ) from error


def application(command: Sequence[str]) -> list[str]:
    """The command to execute: a Python file or module is run by this Python."""
    first = command[0]
    if first == "-m" or (first.endswith(".py") and not os.access(first, os.X_OK)):
        return [sys.executable, *command]
    return list(command)


def startup_folder() -> str:
    """The folder that makes Python give ours for ONNX Runtime, at the head of PYTHONPATH."""
    import tilewright.compat.startup

    return str(Path(tilewright.compat.startup.__file__).parent)
