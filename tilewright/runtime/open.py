"""A compiled model, opened for the kind of machine that it was compiled for."""

from __future__ import annotations

from tilewright.runtime.container import Container
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.model import CompiledModel


def open_model(container: Container, *, threads: int | None = None) -> CompiledModel:
    """The model in a container, ready to be called; `threads` is for processors."""
    if container.manifest["target"].get("kind") == "gpu":
        # Imported here because few models need it: loading one is quick.
        from tilewright.runtime.cuda.executable import CudaExecutable

        model = CudaExecutable(container)
        model.set_threads(threads or 0)
        return model
    return Executable(container, threads=threads)
