"""Loading a saved model without the compiler; `tw.load` also knows models in segments."""

from __future__ import annotations

import logging
import os
import time

from tilewright.core.errors import ExecutionError
from tilewright.runtime.container import Container, read_container
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.model import CompiledModel

_LOG = logging.getLogger(__name__)


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


def open_model(container: Container, *, threads: int | None = None) -> CompiledModel:
    """The model in a container, ready to be called; `threads` is for processors."""
    start = time.perf_counter()
    model = _opened(container, threads)
    ms, size = (time.perf_counter() - start) * 1e3, container.weights.nbytes / 1e6
    name = "a new model" if container.path is None else container.path.name
    _LOG.info("loaded %s in %.1f ms: %.1f MB of weights", name, ms, size)
    return model


def _opened(container: Container, threads: int | None) -> CompiledModel:
    if container.manifest["target"].get("kind") == "gpu":
        # Imported here because few models need it: loading one is quick.
        from tilewright.runtime.cuda.executable import CudaExecutable

        model = CudaExecutable(container)
        model.set_threads(threads or 0)
        return model
    return Executable(container, threads=threads)
