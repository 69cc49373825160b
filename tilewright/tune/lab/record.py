"""A space measured once, whole or the part of it that is small enough, so that it can be replayed.

    space = record(part, measure, columns=feature_names(), ...)
    write_space(path, space, source, licence)

Programs that are spelled alike are measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.core.errors import TuneError
from tilewright.tune.candidate import Candidate, Result, Value
from tilewright.tune.search import Measure
from tilewright.tune.space.moves import enumerate_all
from tilewright.tune.space.replay import About, Key, ReplaySpace
from tilewright.tune.space.space import Space

BATCH = 16


def record(
    name: str,
    space: Space,
    measure: Measure,
    about: About,
    program: Callable[[Candidate], str] | None = None,
    show: Callable[[str], None] = lambda text: None,
) -> ReplaySpace:
    """Measure every legal candidate of a space; `program` says which of them are the same."""
    spelled = program or space.text
    candidates = [c for c in enumerate_all(space) if space.legal(c)]
    kinds: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        kinds.setdefault(spelled(candidate), []).append(candidate)
    first = [alike[0] for alike in kinds.values()]
    results: list[Result] = []
    for start in range(0, len(first), BATCH):
        results.extend(measure(first[start : start + BATCH]))
        show(f"{name}: {len(results)} of {len(first)} programs of {len(candidates)} candidates")
    every = {
        candidate: result
        for result, alike in zip(results, kinds.values(), strict=True)
        for candidate in alike
    }
    return replayed(name, every, space.features(candidates), about)


def replayed(
    name: str, results: dict[Candidate, Result], features: np.ndarray, about: About
) -> ReplaySpace:
    """The space of these candidates, in whose order the rows of features come."""
    if all(result.failure for result in results.values()):
        why = next((result.failure for result in results.values()), "there are no candidates")
        raise TuneError("lab.record", f"nothing of {name} could be measured: {why}")
    knobs = _knobs([*results])
    keys = [_key(candidate, knobs) for candidate in results]
    by_key = dict(zip(keys, results.values(), strict=True))
    return ReplaySpace(
        name,
        knobs,
        {key: result.seconds for key, result in by_key.items() if not result.failure},
        {key: result.failure for key, result in by_key.items() if result.failure},
        dict(zip(keys, features, strict=True)) if about.columns else None,
        about,
    )


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
