"""`tw.load`: a saved model, whole or in segments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tilewright.core.log import show_log
from tilewright.runtime.container import read_container
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel

if TYPE_CHECKING:
    from tilewright.driver.segmented.model import SegmentedModel


def load(path: str | os.PathLike[str]) -> CompiledModel | SegmentedModel:
    """The model saved at `path`, ready to be called. Its weights are mapped, not read.

    No compiler is imported, unless the model is one in segments: what of it is not compiled yet is
    compiled when it is run.
    """
    show_log()
    container = read_container(path)
    if "segmented" not in container.manifest:
        return open_model(container)
    from tilewright.driver.compile import open_segmented

    return open_segmented(container)
