"""A graph as files: its text, and the constants that the text names by hash only, in `.npz`."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.atomic_write import atomic_write
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.graph.text import is_inline, print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.attrs import make_attrs
from tilewright.ops.typecheck import check_types


def read_graph(path: Path) -> Graph:
    """The graph in a file, checked."""
    graph = parse_file(path)
    verify_graph(graph)
    check_types(graph)
    return graph


def parse_file(path: Path) -> Graph:
    """The graph in a file that the compiler has written, which needs no check."""
    text = _readable(path, path.read_text)
    return parse_graph(text, make_attrs, read_constants(path), str(path))


def read_constants(path: Path) -> dict[str, Any]:
    """The large constants of a graph's text, by name."""
    beside = path.with_suffix(".npz")
    if not beside.is_file():
        return {}
    arrays: dict[str, Any] = _readable(beside, lambda: dict(np.load(beside, allow_pickle=False)))
    return arrays


def _readable(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError("graph.file", f"cannot read {path}: {what}") from error


def write_graph(path: Path, graph: Graph, form: str = "ssa") -> list[Path]:
    """Write a graph's text, and the constants that it names by hash only beside it."""
    text = print_graph(graph, form)
    written = [atomic_write(path, lambda file: file.write_text(text))]
    large = {c.name: c.data for c in graph.constants if not is_inline(c)}
    if large:

        def save(file: Path) -> None:
            # Not with np.savez, whose keyword arguments exclude some names.
            with zipfile.ZipFile(file, "w") as archive:
                for name, data in large.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, data, allow_pickle=False)

        written.append(atomic_write(path.with_suffix(".npz"), save))
    return written
