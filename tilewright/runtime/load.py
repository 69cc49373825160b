"""Loading a saved model without the compiler; `tw.load` also knows models in segments."""

from __future__ import annotations

import os

from tilewright.core.errors import ExecutionError
from tilewright.runtime.container import read_container
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.open import open_model


def load(path: str | os.PathLike[str]) -> CompiledModel:
    """The model saved at `path`, ready to be called. Its weights are mapped, not read."""
    container = read_container(path)
    if "segmented" in container.manifest:
        raise ExecutionError(
            "container.segmented",
            f"{path} is a model in segments: what is not compiled yet needs the compiler",
            help="load it with tw.load",
        )
    return open_model(container)
