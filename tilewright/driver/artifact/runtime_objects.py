"""The object code that all models share: thread pool, clock, call frame.

LLVM needs more time for it than for the kernels of a small model, so it is compiled once for each
target: a process keeps it in memory, the disk cache keeps it for other processes.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from llvmlite import binding

from tilewright.codegen.objects import compile as object_compiler
from tilewright.core.disk_cache import fingerprint, open_cache
from tilewright.core.errors import ExecutionError
from tilewright.driver.artifact.entry_point import emit_support
from tilewright.runtime.container import fill_container, read_container
from tilewright.target.target import Target


def support_objects(target: Target) -> dict[str, bytes]:
    """The objects for `target`, by name."""
    return dict(_kept(target))


@cache
def _kept(target: Target) -> dict[str, bytes]:
    texts = emit_support(target)
    store = open_cache()
    if store is None or not texts:
        return _compiled(texts, target)
    # LLVM's version and how it is called are part of the key: they say what a text becomes.
    made_by = (str(binding.llvm_version_info), Path(object_compiler.__file__).read_bytes())
    parts = (part for item in texts.items() for part in item)
    key = fingerprint("support", repr(target), *made_by, *parts)
    # A file that was damaged or evicted just now is only made again.
    with suppress(ExecutionError):
        if (path := store.get(key)) is not None:
            return dict(read_container(path).objects)
    objects = _compiled(texts, target)

    def write(path: Path) -> None:
        fill_container(path, {}, objects, ())

    store.keep(key, write)
    return objects


def _compiled(texts: dict[str, str], target: Target) -> dict[str, bytes]:
    compiled = object_compiler.compile_object
    return {name: compiled(text, target, whole=True) for name, text in texts.items()}
