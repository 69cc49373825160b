"""A log of rewrites: which nodes passes replaced, by what, and under which rule.

with recorded() as rewrites:
    simplify_algebra(graph)
rewrites[0].rule                     # the algebraic rule, "" where the pass has no names
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.core.node import node

_RECORD: ContextVar[list[Rewrite] | None] = ContextVar("rewrites", default=None)


@node
class Rewrite:
    """The values that a node gave, the values that stand in their place, and the rules' names."""

    values: tuple[str, ...]
    results: tuple[str, ...]
    rule: str = ""


@contextmanager
def recorded() -> Iterator[list[Rewrite]]:
    """The rewrites that are made inside, in order."""
    found: list[Rewrite] = []
    token = _RECORD.set(found)
    try:
        yield found
    finally:
        _RECORD.reset(token)


def record(values: tuple[str, ...], results: tuple[str, ...], rule: str = "") -> None:
    """Tell of a rewrite whoever asked for it."""
    found = _RECORD.get()
    if found is not None:
        found.append(Rewrite(values, results, rule))
