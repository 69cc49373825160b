"""The nested tuples, lists and dictionaries that a saved program gives its results in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SEQUENCES = {"builtins.list": list, "builtins.tuple": tuple}


def build(spec: str, results: Sequence[Any]) -> Any:
    """The results in the form that the specification tells; classes of the user's are dictionaries.

    It is JSON: the version of the form and the outermost container.
    """
    _, outermost = json.loads(spec)
    return _build(outermost, iter(results))


def _build(one: Mapping[str, Any], results: Iterator[Any]) -> Any:
    kind, children = one["type"], one["children_spec"]
    if kind is None:
        return next(results)
    items = [_build(child, results) for child in children]
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](items)
    names = _names(one["context"])
    return tuple(items) if len(names) != len(items) else dict(zip(names, items, strict=True))


def _names(context: Any) -> list[str]:
    """The keys that a container tells, or none."""
    found = json.loads(context) if isinstance(context, str) else context
    is_names = isinstance(found, list) and all(isinstance(name, str) for name in found)
    return found if is_names else []
