"""What documents show of random sweeps: `cpu_sweep.py` and `gpu/sweep.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from engine_rows import geometric_mean as mean_of
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
        means = {kind: mean_of([r["ratio"] for r in r_]) for kind, r_ in by(rows, "kind").items()}
        least = min(means, key=lambda kind: means[kind])
        behind = [r for r in rows if is_behind(r)]
        lines.append(
            [
                f"{seed}",
                f"{len(rows)}",
                f"{mean_of(list(means.values())):.2f}",
                f"{least} {means[least]:.2f}",
                f"{len(behind)}",
                f"{min(r['ratio'] for r in rows):.2f}",
            ]
        )
    named = listed([r for r in found["results"] if "ratio" in r and is_behind(r)])
    return f"{markdown(heads, lines)}\n\n{origin(found)}.\n\n{named}"


def gpu_sweep() -> str:
    """Every seed and kind of the GPU's sweep, then what is behind."""
    found = read_results(FOLDER / "sweep-h200.json")
    heads = ["seed", "kind", "cases", "geomean", f"below {GPU_LEAST}", f"below {GPU_BEHIND}"]
    heads += ["least", "error too large", "failed"]
    lines = []
    for seed, of_seed in by(found["results"], "seed", timed=False).items():
        for kind, rows in by(of_seed, "kind", timed=False).items():
            timed = [r for r in rows if "ratio" in r]
            ratios = [r["ratio"] for r in timed]
            lines.append(
                [
                    f"{seed}",
                    kind,
                    f"{len(rows)}",
                    f"{geometric_mean(ratios):.2f}",
                    f"{sum(x < GPU_LEAST for x in ratios)}",
                    f"{sum(x < GPU_BEHIND for x in ratios)}",
                    f"{min(ratios):.2f}",
                    f"{sum(map(is_far, timed))}",
                    f"{len(rows) - len(timed)}",
                ]
            )
    slow = [r for r in found["results"] if r.get("ratio", 1.0) < GPU_LEAST]
    return f"{markdown(heads, lines)}\n\n{origin(found)}.\n\n{listed(slow)}"


def is_behind(row: Row) -> bool:
    """Whether a case of the CPU's sweep is slower than another engine and not at the roof."""
    return bool(row["ratio"] < CPU_BEHIND and (row.get("of_roof") or 0.0) < AT_ROOF)


def is_far(row: Row) -> bool:
    """Whether our error is more than it may be beside torch's."""
    return not row["error"] <= MAX_ERROR_RATIO * row["torch_error"] + ROUNDING


def by(rows: Sequence[Row], key: str, timed: bool = True) -> dict[Any, list[Row]]:
    """Rows by one of their values, in order; mostly only those that were compared."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        if not timed or "ratio" in row:
            found.setdefault(row[key], []).append(row)
    return found


def listed(rows: Sequence[Row]) -> str:
    """Cases by their ratio, least first."""
    if not rows:
        return "None is behind."
    ratio: Callable[[Row], float] = lambda r: r["ratio"]  # noqa: E731
    named = (f"{r['kind']} {r['case']} {r['ratio']:.2f}" for r in sorted(rows, key=ratio))
    return f"Behind: {'; '.join(named)}."
