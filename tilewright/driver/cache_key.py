"""The identity of a compilation: the same key means the same result.

It covers the model's bytes (external data included), the target, the options and the compiler's own
source, so that no version ever uses what another one made.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.core.disk_cache import DiskCache, fingerprint, fingerprint_file, open_cache
from tilewright.core.errors import FrontendError
from tilewright.driver.options import CompileOptions
from tilewright.driver.sources import source_name

PARTS = ".parts.json"
"""The ending of the file beside a compiled model that says what its key was made of."""


class KeyParts(NamedTuple):
    """What decides the result of a compilation; `model` and `target_name` are for people."""

    model: str
    content: str
    target_name: str
    target: str
    dims: tuple[tuple[str, int], ...]
    precision: str
    compiler: str
    records: str
    disabled_passes: tuple[str, ...]
    checks: bool

    def key(self) -> str:
        """The same for the same result."""
        return fingerprint(json.dumps(self._replace(model="", target_name="")))

    @classmethod
    def from_json(cls, text: str) -> KeyParts:
        """What `json.dumps` has made of one."""
        model, content, name, target, dims, precision, compiler, records, passes, checks = (
            json.loads(text)
        )
        sizes = tuple((size_name, size) for size_name, size in dims)
        about = (model, content, name, target, sizes, precision, compiler, records)
        return cls(*about, tuple(passes), checks)


def key_parts(source: Any, options: CompileOptions, store: DiskCache) -> KeyParts | None:
    """What the key of a compilation is made of; `None` for sources without a stable identity."""
    content: str | None
    if isinstance(source, str | os.PathLike):
        content = _file_content(Path(source), store)
    elif hasattr(source, "SerializeToString"):  # an onnx.ModelProto, told without importing onnx
        content = fingerprint(source.SerializeToString(deterministic=True))
    elif isinstance(source, bytes):
        content = fingerprint(source)
    elif hasattr(source, "nodes"):  # a graph, told without importing the compiler
        content = _graph_content(source)
    else:
        content = None
    if content is None:
        return None
    return KeyParts(
        source_name(source),
        content,
        options.target_name,
        repr(options.target),
        tuple(sorted(options.dims.items())),
        options.precision,
        compiler_fingerprint(),
        "" if options.records is None else options.records.identity,
        options.disable_passes,
        options.checks,
    )


def keep_parts(parts: KeyParts, store: DiskCache) -> None:
    """Note what a key is made of, for who asks why a model is compiled again."""
    store.keep(f"{parts.key()}{PARTS}", lambda file: file.write_text(json.dumps(parts)))


@cache
def compiler_fingerprint() -> str:
    """A digest of the compiler's source code, remembered for as long as no file is touched."""
    root = str(Path(__file__).parents[1])
    found = dict(_source_files(root))
    store = open_cache()
    if store is None:
        return _source_digest(root, found)
    identity = [[path, s.st_size, s.st_mtime_ns] for path, s in found.items()]
    key = fingerprint("compiler", json.dumps(identity))
    kept = store.get(key)
    if kept is not None:
        return kept.read_text()
    digest = _source_digest(root, found)
    store.keep(key, lambda file: file.write_text(digest))
    return digest


def _source_files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """All Python files in order; every start of a process asks, so with few calls of the system."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _source_files(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat()


def _source_digest(root: str, files: Iterable[str]) -> str:
    parts = ((os.path.relpath(path, root), Path(path).read_bytes()) for path in files)
    return fingerprint(*(part for both in parts for part in both))


def _file_content(path: Path, store: DiskCache) -> str | None:
    try:
        main = fingerprint_file(path, store)
        files = [path.parent / name for name in _external_names(path, main, store)]
        base = path.parent.resolve()
        if not all(f.is_file() and f.resolve().is_relative_to(base) for f in files):
            return None  # whoever reads the model says what is wrong with it
        return fingerprint(main, *(fingerprint_file(f, store) for f in files))
    except OSError as error:
        raise FrontendError(
            "onnx.unreadable",
            f"cannot read {path}: {error.strerror or error}",
            help="give the path of an ONNX model",
        ) from error


def _graph_content(graph: Any) -> str:
    """The content of a graph: its text, in which large constants are digests."""
    from tilewright.ir.graph.text import print_graph

    return fingerprint("graph", print_graph(graph))


def _external_names(path: Path, content: str, store: DiskCache) -> list[str]:
    """The files that a model refers to, remembered for its content: finding them reads it all.

    They are remembered as the model spells them: the same model may lie in two folders.
    """
    key = fingerprint("external files", content)
    found = store.get(key)
    if found is not None:
        return [str(name) for name in json.loads(found.read_text())]
    names = _find_external(path) if _mentions_external_data(path) else []
    store.keep(key, lambda file: file.write_text(json.dumps(names)))
    return names


def _find_external(path: Path) -> list[str]:
    # Imported here because onnx takes a while to load.
    from tilewright.frontends.onnx.model.read import external_locations

    return list(external_locations(path))


def _mentions_external_data(path: Path) -> bool:
    """Whether the file may refer to others; a cheap search, false alarms only cost time."""
    if path.stat().st_size == 0:
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"\x0a\x08location") >= 0
