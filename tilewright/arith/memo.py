"""A bounded memo table for facts about interned expressions."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

LIMIT = 100_000


class Memo(dict[K, V]):
    """A dict that is cleared when it is full, so that it does not keep all expressions alive."""

    def keep(self, key: K, value: V) -> V:
        """Remember `value` for `key` and return it."""
        if len(self) >= LIMIT:
            self.clear()
        self[key] = value
        return value
