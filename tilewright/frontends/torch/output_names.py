"""What a module's results are called: by the keys and fields that `forward` gives them.

output_names(spec)      {"logits": x, "states": (y, z)} -> ["logits", "states.0", "states.1"]
"""

from __future__ import annotations

from typing import Any

from torch.utils._pytree import MappingKey, TreeSpec, tree_flatten_with_path, tree_unflatten


def output_names(spec: TreeSpec) -> list[str | None]:
    """A name for each result; of those that have no key or field none."""
    marked = tree_unflatten([_Leaf()] * spec.num_leaves, spec)
    paths, _ = tree_flatten_with_path(marked, is_leaf=lambda item: isinstance(item, _Leaf))
    return [_name(path) for path, _ in paths]


class _Leaf:
    """What is in the place of a result."""


def _name(path: tuple[Any, ...]) -> str | None:
    parts = [_part(key) for key in path]
    is_named = any(isinstance(part, str) for part in parts)
    return ".".join(map(str, parts)) if is_named else None


def _part(key: Any) -> str | int:
    """A key, a field, or a place."""
    if isinstance(key, MappingKey):
        return str(key.key)
    name: str | None = getattr(key, "name", None)
    return key.idx if name is None else name
