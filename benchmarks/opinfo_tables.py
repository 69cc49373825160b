"""What `docs/results/opinfo.md` shows of a run of `opinfo.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from results_file import FOLDER, origin, read_results
from tables import markdown

OUTCOMES = ("right", "parts", "refused", "wrong", "failed", "timeout", "crashed")
"""Of samples that torch itself traces whole."""
Row = Mapping[str, Any]


def opinfo() -> str:
    """Counts by direction and element type, then the operators that are not compiled whole."""
    found = read_results(FOLDER / "opinfo.json")
    rows = found["results"]
    heads = ["", "element type", "operators", "samples", *OUTCOMES, "compiled"]
    lines = [_line(*key, of) for key, of in _grouped(rows).items()]
    about = f"Samples; torch {found['torch']}; {origin(found)}; {found['minutes']:.0f} minutes."
    return "\n\n".join([markdown(heads, lines, left=2), about, *_named(rows)])


def counts(rows: Iterable[Row]) -> Counter[str]:
    """How many samples of these rows had each outcome."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["outcomes"])
    return total


def kind(row: Row) -> str:
    """The table's word for what is compared."""
    what = "backward" if row["backward"] else "forward"
    if row["random"]:
        return f"{what}, random results"
    return f"{what}, by LAPACK" if row["host"] else what


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((kind(row), row["dtype"]), []).append(row)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def _line(what: str, dtype: str, rows: list[Row]) -> list[str]:
    total = counts(rows)
    samples = sum(total[outcome] for outcome in OUTCOMES)
    share = f"{total['right'] / samples:.1%}" if samples else "–"
    operators = sum(any(row["outcomes"].get(o) for o in OUTCOMES) for row in rows)
    cells = [f"{total[outcome]:,}" for outcome in OUTCOMES]
    return [what, dtype, f"{operators:,}", f"{samples:,}", *cells, share]


def _named(rows: Iterable[Row]) -> Iterable[str]:
    """Which operators have samples that are not right, by outcome."""
    by_outcome: dict[str, dict[str, None]] = {}
    for row in rows:
        for outcome in OUTCOMES[1:]:
            if row["outcomes"].get(outcome):
                by_outcome.setdefault(outcome, {})[row["op"]] = None
    for outcome in OUTCOMES[1:]:
        if names := by_outcome.get(outcome):
            yield f"{outcome.capitalize()}, at least one sample: {', '.join(sorted(names))}."
