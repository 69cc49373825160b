"""What compiled models are on disk, and why a compilation is not among them.

explain_miss("model.onnx", make_options(dims={"N": 8}), store)
# not in the cache; model.onnx there differs in dims: none there, N=8 here
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tilewright.core.disk_cache import DiskCache
from tilewright.driver.cache_key import PARTS, KeyParts, key_parts
from tilewright.driver.options import CompileOptions

# What a difference in a part of the key means to a person.
_MEANING = {
    "content": "the content of the model",
    "compiler": "the version of the compiler: its source has changed",
    "records": "the tuned schedules",
    "target": "the machine, or its calibration",
}


def kept_compilations(store: DiskCache) -> list[tuple[Path, KeyParts]]:
    """The compiled models on disk and what their keys are made of, the last used first."""
    found = []
    for path, _ in store.files():
        compiled = path.with_name(path.name.removesuffix(PARTS))
        if path.name.endswith(PARTS) and compiled.is_file():
            found.append((compiled, KeyParts.from_json(path.read_text())))
    return sorted(found, key=lambda pair: -pair[0].stat().st_mtime)


class Miss(NamedTuple):
    """Whether a compilation is in the cache, and how it differs from the nearest that is."""

    hit: bool
    nearest: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if self.hit:
            return "in the cache"
        if self.differences and not self.nearest:
            return f"not in the cache: {self.differences[0]}"
        if not self.nearest:
            return "not in the cache: no model of this name or content was compiled"
        return f"not in the cache; {self.nearest} there differs in {'; '.join(self.differences)}"


def explain_miss(source: Any, options: CompileOptions, store: DiskCache) -> Miss:
    """Why a compilation would or would not be found in the cache."""
    parts = key_parts(source, options, store)
    if parts is None:
        return Miss(False, "", ("the source has no stable identity, so it is never kept",))
    if store.get(parts.key()) is not None:
        return Miss(True, parts.model, ())
    known = [k for _, k in kept_compilations(store) if parts.model == k.model]
    known += [k for _, k in kept_compilations(store) if parts.content == k.content]
    if not known:
        return Miss(False, "", ())
    nearest = min(known, key=lambda k: len(_differences(parts, k)))
    return Miss(False, nearest.model, tuple(_differences(parts, nearest)))


def _differences(wanted: KeyParts, known: KeyParts) -> list[str]:
    if wanted.target_name != known.target_name:
        found = [f"the target: {known.target_name} there, {wanted.target_name} here"]
    else:
        found = [_MEANING["target"]] if wanted.target != known.target else []
    for name in KeyParts._fields:
        if name in ("model", "target", "target_name"):
            continue
        here, there = getattr(wanted, name), getattr(known, name)
        if here != there:
            found.append(_MEANING.get(name) or f"{name}: {_said(there)} there, {_said(here)} here")
    return found


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        pairs = (f"{v[0]}={v[1]}" if isinstance(v, tuple) else str(v) for v in value)
        return ", ".join(pairs) or "none"
    return str(value)
