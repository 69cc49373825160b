"""Random sweeps, `cpu_sweep.py` and `gpu/sweep.py`: what counts, and what documents show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine_rows import geometric_mean
from results_file import FOLDER, origin, read_results
from tables import markdown

Row = Mapping[str, Any]
# A case of the CPU's sweep below this is named, one of the GPU's below that.
CPU_BEHIND, GPU_BEHIND, GPU_LEAST = 0.9, 0.95, 0.85
AT_ROOF = 0.9
# Our error over torch's, and what both may have besides.
MAX_ERROR_RATIO, ROUNDING = 1.5, 1e-7


def cpu_sweep() -> str:
    """Every seed of the CPU's sweep, then what is behind."""
    found = read_results(FOLDER / "sweep-cascadelake.json")
    heads = ["seed", "cases", "mean of kinds", "least kind", "behind", "least"]
    lines = []
    for seed, rows in by(found["results"], "seed").items():
        means = {
            kind: geometric_mean([r["ratio"] for r in r_]) for kind, r_ in by(rows, "kind").items()
        }
        least = min(means, key=lambda kind: means[kind])
        behind = [r for r in rows if is_behind(r)]
        lines.append(
            [
                f"{seed}",
                f"{len(rows)}",
                f"{geometric_mean(list(means.values())):.2f}",
                f"{least} {means[least]:.2f}",
                f"{len(behind)}",
                f"{min(r['ratio'] for r in rows):.2f}",
            ]
        )
    named = listed([r for r in found["results"] if is_behind(r)])
    return f"{markdown(heads, lines)}\n\n{origin(found)}.\n\n{named}"


def gpu_sweep() -> str:
    """Every kind of every seed of the GPU's sweep, then what is far behind."""
    found = read_results(FOLDER / "sweep-h200.json")
    heads = ["kind", "seed", "cases", "mean", "0.95 or more", f"below {GPU_LEAST}", "least"]
    heads.append("error too large")
    lines = [
        _gpu_line(kind, seed, rows)
        for kind, of_kind in by(found["results"], "kind").items()
        for seed, rows in by(of_kind, "seed").items()
    ]
    named = listed([r for r in found["results"] if r.get("ratio", 1.0) < GPU_LEAST])
    return f"{markdown(heads, lines)}\n\n{origin(found)}.\n\n{named}"


def _gpu_line(kind: str, seed: int, rows: Sequence[Row]) -> list[str]:
    ratios = [r["ratio"] for r in rows]
    even = sum(r >= GPU_BEHIND for r in ratios) / len(ratios)
    return [
        kind,
        f"{seed}",
        f"{len(rows)}",
        f"{geometric_mean(ratios):.2f}",
        f"{even:.0%}",
        f"{sum(r < GPU_LEAST for r in ratios)}",
        f"{min(ratios):.2f}",
        f"{sum(map(is_far, rows))}",
    ]


def is_behind(row: Row) -> bool:
    """Whether a case of the CPU's sweep is slower than another engine and not at the roof."""
    return row.get("ratio", 1.0) < CPU_BEHIND and (row.get("of_roof") or 0.0) < AT_ROOF


def is_far(row: Row) -> bool:
    """Whether our error is more than it may be beside torch's."""
    most = MAX_ERROR_RATIO * row["torch_error"] + ROUNDING
    return row["error"] is None or not row["error"] <= most  # files have no NaN


def by(rows: Sequence[Row], key: str) -> dict[Any, list[Row]]:
    """The rows that were compared by one of their values, in order."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        if "ratio" in row:
            found.setdefault(row[key], []).append(row)
    return found


def listed(rows: Sequence[Row]) -> str:
    """Cases by their ratio, least first."""
    if not rows:
        return "None is behind."
    ratio: Callable[[Row], float] = lambda r: r["ratio"]  # noqa: E731
    named = (f"{r['kind']} {r['case']} {r['ratio']:.2f}" for r in sorted(rows, key=ratio))
    return f"Behind: {'; '.join(named)}."
