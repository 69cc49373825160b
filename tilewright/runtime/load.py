"""Loading a saved model: `load("model.tw")` gives what `tw.compile` gave."""

from __future__ import annotations

import os

from tilewright.runtime.container import read_container
from tilewright.runtime.executable import Executable


def load(path: str | os.PathLike[str]) -> Executable:
    """The model saved at `path`, ready to be called. Its weights are mapped, not read."""
    return Executable(read_container(path))
