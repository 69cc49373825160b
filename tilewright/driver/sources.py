"""Modules of torch among the sources of `compile`, told apart without importing torch."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.core.errors import ConfigError


def read_source(source: Any, inputs: Any) -> Any:
    """The source as it is, or the graph of a module of torch for these example inputs."""
    if is_torch(source):
        from tilewright.frontends.torch.capture import import_torch

        return import_torch(source, inputs)
    if inputs is not None:
        raise ConfigError(
            "compile.inputs",
            f"example inputs are for modules of torch, not for a {type(source).__name__}",
            help="leave `inputs` out; give symbolic sizes a value with `dims`",
        )
    return source


def is_torch(source: Any) -> bool:
    """Whether it is a `torch.nn.Module` or a program of `torch.export`."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    export = sys.modules.get("torch.export")
    kinds = (torch.nn.Module, *([export.ExportedProgram] if export is not None else []))
    return isinstance(source, kinds)
