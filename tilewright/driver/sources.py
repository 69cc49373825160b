"""What `compile` takes → a graph: a path, an ONNX model, a module of torch, a graph.

A file is what its content says: an ONNX model, a program that `torch.export` has saved, a
TorchScript archive.

Modules of torch are told apart without importing torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilewright.core.arguments import path_argument
from tilewright.core.errors import ConfigError
from tilewright.core.file_format import EXPORTED, HEAD, TORCHSCRIPT, FileFormat, foreign_format

if TYPE_CHECKING:
    from tilewright.ir.graph.nodes import Graph


def read_source(source: Any, inputs: Any) -> Any:
    """The source as it is, or the graph of a module of torch for these example inputs."""
    if is_torch(source):
        from tilewright.frontends.torch.capture import import_torch

        return import_torch(source, inputs)
    found = None if inputs is None else _format(source)
    if found is TORCHSCRIPT:
        return _torch_front_end(source).import_script(Path(source), inputs)
    if inputs is not None:
        raise ConfigError(
            "compile.inputs",
            f"example inputs are for modules of torch and TorchScript archives, not for a "
            f"{found.name.removeprefix('a ') if found else type(source).__name__}",
            help="leave `inputs` out; give symbolic sizes a value with `dims`",
        )
    return _checked(source)


def _checked(source: Any) -> Any:
    """The source, if it is something that a model can be read from."""
    if isinstance(source, str | os.PathLike):
        return path_argument("the model", source)
    is_model = hasattr(source, "graph") and hasattr(source, "opset_import")
    if is_model or hasattr(source, "nodes") or isinstance(source, bytes | bytearray | memoryview):
        return source
    what = "None" if source is None else f"a {type(source).__name__}"
    raise ConfigError(
        "compile.source",
        f"{what} is no model",
        help="give the path of an .onnx or .pt2 file, the bytes of an .onnx file, an "
        "onnx.ModelProto, a torch.nn.Module with inputs=, a program of torch.export, or a Graph",
    )


def source_name(source: Any) -> str:
    """What the log calls a model: a file's name, or that of the graph."""
    if isinstance(source, str | os.PathLike):
        return os.path.basename(source)
    name = getattr(getattr(source, "graph", source), "name", "")
    return str(name) or f"unnamed {type(source).__name__}"


def is_torch(source: Any) -> bool:
    """Whether it is a `torch.nn.Module` or a program of `torch.export`."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    export = sys.modules.get("torch.export")
    kinds = (torch.nn.Module, *([export.ExportedProgram] if export is not None else []))
    return isinstance(source, kinds)


def import_graph(source: Any, dims: Mapping[str, int] | None = None) -> Graph:
    """A model as a graph, before any pass."""
    # Imported here because a model that is in the cache needs no front end.
    from tilewright.frontends.onnx.importer import import_onnx
    from tilewright.ir.graph.nodes import Graph
    from tilewright.passes.canonicalize.infer_types import bind_dims

    found = _format(source)
    if found is EXPORTED:
        source = _torch_front_end(source).import_saved(Path(source))
    elif found is TORCHSCRIPT:  # without inputs, which is an error that says so
        source = _torch_front_end(source).import_script(Path(source), None)
    if not isinstance(source, Graph):
        return import_onnx(source, dict(dims or {}))
    if dims and is_fused(source):
        raise ConfigError(
            "dims.fused",
            f"the sizes of graph {source.name!r} can only be set before fusion",
            help="give the model, or its graph before the pass `fuse`",
        )
    return bind_dims(source, dims or {})


def _format(source: Any) -> FileFormat | None:
    """What kind of file a path is the path of; nothing where it may be ONNX."""
    if not isinstance(source, str | os.PathLike):
        return None
    try:
        with open(source, "rb") as file:
            return foreign_format(file.read(HEAD), Path(source))
    except OSError:
        return None  # whoever reads it as a model says what is wrong


def _torch_front_end(path: Any) -> ModuleType:
    try:
        from tilewright.frontends.torch import capture
    except ModuleNotFoundError as error:
        raise ConfigError(
            "torch.missing",
            f"{path} is a model of torch, and {error.name} is not installed",
            help="pip install 'tilewright[torch]'; what is compiled runs without it",
        ) from None
    return capture


def is_fused(graph: Graph) -> bool:
    """Whether nodes of a graph are kernels already."""
    return any(n.op == "fused" for n in graph.walk())
