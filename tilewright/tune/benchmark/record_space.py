"""Every candidate of a space measured once, which makes a tabular space of it.

    space = record(name, part, measure, trace, about)
    write_space(path, space, source, licence)

Candidates with the same trace are measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tilewright.core.errors import TuneError
from tilewright.tune.candidate import Candidate, Result, Value
from tilewright.tune.search import Measure
from tilewright.tune.space.space import Space
from tilewright.tune.space.tabular import About, Key, TabularEntry, TabularSpace
from tilewright.tune.space.variation import enumerate_all

BATCH = 16
"""Candidates that are measured before progress is shown."""

Item = TypeVar("Item")


def record(
    name: str,
    space: Space,
    measure: Measure,
    trace: Callable[[Candidate], str],
    about: About,
    show: Callable[[str], None] = lambda text: None,
) -> TabularSpace:
    """Measure every legal candidate of a space of programs."""
    candidates = [c for c in enumerate_all(space) if space.legal(c)]
    traces = [trace(candidate) for candidate in candidates]
    first = dict(zip(reversed(traces), reversed(candidates), strict=True))
    results: dict[str, Result] = {}
    for some in _batches([*first.items()]):
        measured = measure([candidate for _, candidate in some])
        results.update(zip([text for text, _ in some], measured, strict=True))
        show(f"{name}: {len(results)} of {len(first)} programs of {len(candidates)} candidates")
    if all(result.failure for result in results.values()):
        why = next((result.failure for result in results.values()), "there are no candidates")
        raise TuneError("lab.record", f"nothing of {name} could be measured: {why}")
    knobs = _knobs(candidates)
    keys = [_key(candidate, knobs) for candidate in candidates]
    found = {key: results[text] for key, text in zip(keys, traces, strict=True)}
    rows = space.features(candidates).tolist()
    programs = [TabularEntry(text, tuple(row)) for text, row in zip(traces, rows, strict=True)]
    return TabularSpace(
        name,
        knobs,
        {key: result.seconds for key, result in found.items() if not result.failure},
        {key: result.failure for key, result in found.items() if result.failure},
        dict(zip(keys, programs, strict=True)),
        about,
    )


def _batches(items: list[Item]) -> Iterator[list[Item]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _knobs(candidates: Sequence[Candidate]) -> dict[str, tuple[Value, ...]]:
    """The decisions in the order in which they come up, with all values that occur."""
    names: list[str] = []
    for candidate in candidates:
        place = 0
        for name, _ in candidate.decisions:
            if name in names:
                place = max(place, names.index(name) + 1)
            else:
                names.insert(place, name)
                place += 1
    values: dict[str, dict[Value, None]] = {name: {} for name in names}
    for candidate in candidates:
        decisions = dict(candidate.decisions)
        for name in names:
            values[name][decisions.get(name)] = None
    return {name: tuple(sorted(found, key=_order)) for name, found in values.items()}


def _order(value: Value) -> tuple[bool, str, float, str]:
    """None first, then numbers in their order, then the rest by how they are spelled."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return (value is not None, type(value).__name__, number, str(value))


def _key(candidate: Candidate, knobs: dict[str, tuple[Value, ...]]) -> Key:
    decisions = dict(candidate.decisions)
    return tuple(decisions.get(name) for name in knobs)
