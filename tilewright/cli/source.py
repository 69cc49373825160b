"""Model files of any kind: ONNX, a saved model (.tw), the text of a graph (.graph)."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.cli.output import progress
from tilewright.core.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.driver.staged import StagedModel, ValuePort
    from tilewright.ir.graph.nodes import Graph
    from tilewright.runtime.binding import Port
    from tilewright.runtime.executable import Executable

    Ports = tuple[Sequence[Port | ValuePort], Sequence[Port | ValuePort]]

SAVED_MAGIC = b"TILEWRT"
GRAPH = ".graph"
"""The ending of a file with the text of a graph; its large constants lie beside it, in `.npz`."""


def is_saved(path: Path) -> bool:
    """Whether `path` is a compiled model, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(SAVED_MAGIC)) == SAVED_MAGIC
    except OSError:
        return False  # whoever reads it next says what is wrong


def open_model(
    path: Path,
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    cache: bool = True,
    **options: Any,
) -> Executable | StagedModel:
    """A model ready to run: loaded if it was saved, else compiled with `dims` and `options`."""
    if is_saved(path):
        from tilewright.driver.load import load

        if options.get("tuned") is not None:
            raise ConfigError("tuned.saved", f"{path} is compiled", help="give the .onnx file")
        saved = load(path)
        if threads is not None:
            saved.set_threads(threads)
        return saved
    from tilewright.driver.compile import compile

    with progress() as show:
        source = read_source(path)
        return compile(source, threads=threads, dims=dims, cache=cache, progress=show, **options)


def model_ports(path: Path, dims: Mapping[str, int]) -> Ports:
    """The inputs and outputs of a model, without compiling it."""
    if is_saved(path):
        return _saved_ports(path)
    from tilewright.driver.compile import compile
    from tilewright.driver.compiler import import_graph
    from tilewright.driver.manifest import graph_ports
    from tilewright.frontends.onnx.waiting import Waiting
    from tilewright.runtime.binding import Port

    source = read_source(path)
    try:
        inputs, outputs = graph_ports(import_graph(source, dims))
    except Waiting:  # nothing is compiled before a model in stages runs
        with compile(source, dims=dims) as staged:
            return staged.inputs, staged.outputs
    return list(map(Port.from_manifest, inputs)), list(map(Port.from_manifest, outputs))


def _saved_ports(path: Path) -> Ports:
    from tilewright.driver.load import load
    from tilewright.runtime.binding import Port
    from tilewright.runtime.container import read_container

    manifest = read_container(path).manifest
    if "staged" in manifest:
        with load(path) as model:
            return model.inputs, model.outputs
    return (
        [Port.from_manifest(one) for one in manifest["inputs"]],
        [Port.from_manifest(one) for one in manifest["outputs"]],
    )


def read_source(path: Path) -> Path | Graph:
    """What `compile` takes: a graph from its text, anything else as the path it is."""
    if path.suffix != GRAPH:
        return path
    from tilewright.ir.graph.text import parse_graph
    from tilewright.ir.graph.verify import verify_graph
    from tilewright.ops.attrs import make_attrs
    from tilewright.ops.check import check_types

    text = _readable(path, path.read_text)
    graph = parse_graph(text, make_attrs, read_constants(path), str(path))
    verify_graph(graph)
    check_types(graph)
    return graph


def read_constants(path: Path) -> dict[str, Any]:
    """The large constants of a graph's text, by name."""
    import numpy as np

    beside = path.with_suffix(".npz")
    if not beside.is_file():
        return {}
    return _readable(beside, lambda: dict(np.load(beside, allow_pickle=False)))


def _readable(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError("cli.file", f"cannot read {path}: {what}") from error


def write_graph(path: Path, graph: Graph) -> list[Path]:
    """Write a graph's text, and the constants that it names by hash only beside it."""
    import numpy as np

    from tilewright.core.files import atomic_write
    from tilewright.ir.graph.text import INLINE_LIMIT, print_graph

    text = print_graph(graph)
    written = [atomic_write(path, lambda file: file.write_text(text))]
    large = {c.name: c.data for c in graph.constants if c.data.size > INLINE_LIMIT}
    if large:

        def save(file: Path) -> None:
            # Not with np.savez, whose keyword arguments exclude some names.
            with zipfile.ZipFile(file, "w") as archive:
                for name, data in large.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, data, allow_pickle=False)

        written.append(atomic_write(path.with_suffix(".npz"), save))
    return written
