"""The key of a compilation, for tests that compare keys."""

from __future__ import annotations

from typing import Any

from tilewright.core.disk_cache import DiskCache
from tilewright.driver.cache_key import key_parts
from tilewright.driver.options import CompileOptions


def compilation_key(source: Any, options: CompileOptions, store: DiskCache) -> str | None:
    """The key; `None` for sources that have no stable identity."""
    parts = key_parts(source, options, store)
    return None if parts is None else parts.key()
