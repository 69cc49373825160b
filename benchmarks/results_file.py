"""Results files: figures as JSON with the machine, the date and the commit they were measured at.

    write_results(path, machine, results=rows)
    origin(read_results(path))          # "NVIDIA H200, 2026-11-18, commit cae8247d"

A file from before commits were recorded names the one that brought its figures, as `kept_in`.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revision import commit

FOLDER = Path(__file__).resolve().parent / "results"
Results = Mapping[str, Any]


def write_results(path: Path, machine: Any, **figures: Any) -> None:
    """Write figures that were measured today, at this commit."""
    today = datetime.date.today().isoformat()
    keep(path, {"date": today, "commit": commit(), "machine": machine, **figures})


def keep(path: Path, results: Results) -> None:
    """Write results; one line a row, so that two files can be compared."""
    parts = []
    for key, value in finite(results).items():
        rows = ",\n  ".join(map(_text, value)) if isinstance(value, list) else ""
        parts.append(f' "{key}": ' + (f"[\n  {rows}\n ]" if rows else _text(value)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def read_results(path: Path) -> dict[str, Any]:
    """The results in a file, which must say where they come from."""
    found: dict[str, Any] = json.loads(path.read_text(), parse_constant=_not_json)
    missing = [key for key in ("date", "machine") if not found.get(key)]
    if not (found.get("commit") or found.get("kept_in")):
        missing.append("commit")
    if missing:
        raise ValueError(
            f"{path.name} does not name the {' and the '.join(missing)} of its figures"
        )
    return found


def origin(results: Results) -> str:
    """Machine, date and commit of figures."""
    machine = results["machine"]
    name = machine if isinstance(machine, str) else machine["cpu"]
    return f"{name.partition(',')[0]}, {results['date']}, {revision(results)}"


def revision(results: Results) -> str:
    """The commit of figures as a page says it."""
    if results.get("commit"):
        return f"commit {results['commit']}"
    return f"before commit {results['kept_in']}"


def finite(value: Any) -> Any:
    """The same data, with `None` where a number is not finite, as JSON has no such numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
