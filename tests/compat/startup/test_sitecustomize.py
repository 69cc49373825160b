"""The folder on PYTHONPATH: an environment without ONNX Runtime, and one with its own startup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tilewright
import tilewright.compat.startup

FOLDER = str(Path(tilewright.compat.startup.__file__).parent)
PACKAGE = str(Path(tilewright.__file__).parents[1])


def _run(script: str, *path: str, options: tuple[str, ...] = ()) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, *path])}
    command = [sys.executable, *options, "-c", script]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_every_process_gets_ours() -> None:
    script = "import onnxruntime; print(onnxruntime.__name__)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    assert _run(script, PACKAGE).strip() == "tilewright.compat.onnxruntime"
    assert _run(child, PACKAGE).strip() == "tilewright.compat.onnxruntime"


def test_what_it_hides_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    assert _run("print('app')", PACKAGE, str(tmp_path)).split() == ["theirs", "app"]


def test_an_environment_without_this_package() -> None:
    # -S leaves out the folder of installed packages, and sitecustomize with it.
    script = (
        f"import runpy; runpy.run_path({FOLDER + '/sitecustomize.py'!r}, run_name='sitecustomize')"
    )
    script += "; from importlib.util import find_spec; print(find_spec('onnxruntime').origin)"
    assert "tilewright" in _run(script, options=("-S",))
