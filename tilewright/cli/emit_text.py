"""The stages of a compilation as text, to standard output, a file or a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.cli.source import GRAPH
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.atomic_write import atomic_write
from tilewright.core.errors import ConfigError
from tilewright.driver.artifact.entry_point import emit_modules
from tilewright.driver.graph_file import write_graph
from tilewright.driver.kernel.overrides import LOOPS
from tilewright.driver.model_build import ModelBuild
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.loop.text import print_func

Texts = dict[str, str]


def _loops(build: ModelBuild) -> Texts:
    return {name: print_func(k.scheduled.func) for name, k in build.distinct_kernels.items()}


def _asm(build: ModelBuild) -> Texts:
    modules = emit_modules(build).items()
    return {name: compile_assembly(text, build.target) for name, text in modules}


def _ptx(build: ModelBuild) -> Texts:
    if not build.target.emits_ptx:
        raise ConfigError(
            "cli.ptx",
            f"PTX is for NVIDIA GPUs, not for {build.target.cpu}",
            help="add --target cuda, or emit asm",
        )
    return _asm(build)


# What to emit: the ending of its files, how its comments begin, its texts by name.
STAGES: dict[str, tuple[str, str, Callable[[ModelBuild], Texts]]] = {
    "loops": (LOOPS, "#", _loops),
    "llvm": (".ll", ";", emit_modules),
    "asm": (".s", "#", _asm),
    "ptx": (".ptx", "//", _ptx),
}


def emit_texts(build: ModelBuild, stage: str, output: Path | None) -> dict[str, Any]:
    """Write the texts of a stage where `output` says: nowhere, one file, or a file each."""
    ending, comment, make = STAGES[stage]
    texts = make(build)
    if output is not None and is_folder(output):
        _make_folder(output)
        files = [write_text(output / f"{name}{ending}", text) for name, text in texts.items()]
        return {"files": files}
    if len(texts) > 1:
        texts = {name: f"{comment} {name}\n{text}\n" for name, text in texts.items()}
    if output is None:
        return {"files": [], "texts": texts}
    return {"files": [write_text(output, "".join(texts.values()))]}


def emit_graph(graph: Graph, output: Path | None, form: str = "ssa") -> dict[str, Any]:
    """Write a graph's text in a form of `ir.graph.text.FORMS` where `output` says."""
    if output is None:
        return {"files": [], "texts": {graph.name: print_graph(graph, form)}}
    if is_folder(output):
        _make_folder(output)
        output = output / f"{graph.name}{GRAPH}"
    return {"files": [str(path) for path in write_graph(output, graph, form)]}


def is_folder(path: Path) -> bool:
    """Whether several files go there: it is a folder, or a new name without an ending."""
    return path.is_dir() or (not path.suffix and not path.exists())


def write_text(path: Path, text: str) -> str:
    """Write a text, whole or not at all; its path."""
    return os.fspath(atomic_write(path, lambda file: file.write_text(text)))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "cli.folder", f"cannot make the folder {folder}: {error.strerror or error}"
        ) from error
