"""Run by Python at its start where this folder is on PYTHONPATH: ONNX Runtime becomes ours.

Whatever `sitecustomize` there is besides is run as well.
"""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _other() -> str | None:
    """The `sitecustomize` that this one hides."""
    path = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", path)
    return None if spec is None else spec.origin


def _start() -> None:
    # The environment of the application may not have this package; its own modules come first.
    if PathFinder.find_spec("tilewright") is None:
        sys.path.append(str(_HERE.parents[2]))
    from tilewright.compat.import_hook import install

    install()
    other = _other()
    if other is not None:
        runpy.run_path(other, run_name="sitecustomize")


if __name__ == "sitecustomize":
    _start()
