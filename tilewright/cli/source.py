"""Model files of any kind: ONNX, a program of torch (.pt2), a saved one (.tw), a graph's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.cli.output import progress
from tilewright.core.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.driver.segmented.model import SegmentedModel
    from tilewright.frontends.onnx.segments.declared_types import ValuePort
    from tilewright.ir.graph.nodes import Graph
    from tilewright.runtime.binding import Port
    from tilewright.runtime.model import CompiledModel

    Ports = tuple[Sequence[Port | ValuePort], Sequence[Port | ValuePort]]

SAVED_MAGIC = b"TILEWRT"
GRAPH = ".graph"
"""The ending of a file with the text of a graph, see `driver/graph_file.py`."""


def is_saved(path: Path) -> bool:
    """Whether `path` is a compiled model, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(SAVED_MAGIC)) == SAVED_MAGIC
    except OSError:
        return False  # whoever reads it next says what is wrong


def open_model(path: Path, options: CompileOptions) -> CompiledModel | SegmentedModel:
    """A model ready to run: loaded if it was saved, else compiled."""
    if is_saved(path):
        from tilewright.driver.load import load

        if options.records is not None:
            raise ConfigError("tuned.saved", f"{path} is compiled", help="give the .onnx file")
        if options.disable_passes:
            raise ConfigError("pass.saved", f"{path} is compiled", help="give the .onnx file")
        if options.target_name != "native":
            raise ConfigError("target.saved", f"{path} is compiled", help="give the .onnx file")
        saved = load(path)
        if options.threads is not None:
            saved.set_threads(options.threads)
        return saved
    from tilewright.driver.compile import compile_model

    with progress() as show:
        return compile_model(read_source(path), replace(options, progress=show))


def model_ports(path: Path, dims: Mapping[str, int]) -> Ports:
    """The inputs and outputs of a model, without compiling it."""
    if is_saved(path):
        return _saved_ports(path)
    from tilewright.driver.artifact.manifest import graph_ports
    from tilewright.driver.compile import compile_segmented
    from tilewright.driver.options import make_options
    from tilewright.driver.sources import import_graph
    from tilewright.frontends.onnx.segments.data_dependent import DataDependent
    from tilewright.runtime.binding import Port

    source = read_source(path)
    try:
        inputs, outputs = graph_ports(import_graph(source, dims))
    except DataDependent:  # nothing is compiled before a model in segments runs
        with compile_segmented(source, make_options(dims=dims)) as model:
            return model.inputs, model.outputs
    return list(map(Port.from_manifest, inputs)), list(map(Port.from_manifest, outputs))


def _saved_ports(path: Path) -> Ports:
    from tilewright.driver.load import load
    from tilewright.runtime.binding import Port
    from tilewright.runtime.container import read_container

    manifest = read_container(path).manifest
    if "segmented" in manifest:
        with load(path) as model:
            return model.inputs, model.outputs
    return (
        [Port.from_manifest(one) for one in manifest["inputs"]],
        [Port.from_manifest(one) for one in manifest["outputs"]],
    )


def read_source(path: Path, types: Any = None) -> Path | Graph:
    """What `compile` takes: a graph from its text, anything else as the path it is.

    A file that tells no types is read with those that its inputs are said to have.
    """
    if types is not None:
        from tilewright.driver.sources import read_source as read_with_types

        graph: Graph = read_with_types(path, types)
        return graph
    if path.suffix != GRAPH:
        return path
    from tilewright.driver.graph_file import read_graph

    return read_graph(path)
