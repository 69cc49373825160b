"""Measured figures → the README's tables between its two `measured` marks, and the day's record.

    python benchmarks/latency.py --json models.json
    python benchmarks/latency.py kernels --json kernels.json
    python benchmarks/compile_cost.py --json compile.json
    python benchmarks/report.py models.json kernels.json --compile compile.json

The tables are generated, never typed: a figure in them comes from the files given. All of it is
kept in `benchmarks/results/<date>-<cpu>.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
OURS = "tilewright"
LABELS = {
    OURS: "Tilewright",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "inductor": "torch.compile",
    "torch": "torch eager",
    "jax": "JAX",
    "iree": "IREE",
    "tvm-untuned": "TVM, untuned",
}
DIGITS = 5

Row = Mapping[str, Any]
Rows = Mapping[str, Mapping[str, Row]]


def merge(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several runs of `latency.py` on one machine as one; a later figure replaces an earlier."""
    processors = {report["machine"]["cpu"] for report in reports}
    if len(processors) > 1:
        sys.exit(f"these were measured on different machines: {', '.join(sorted(processors))}")
    rows = {(r["model"], r["engine"]): r for report in reports for r in report["results"]}
    return {**reports[-1], "results": list(rows.values())}


def by_model(results: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Model → engine → row, without those that failed."""
    found: dict[str, dict[str, Row]] = {}
    for row in results:
        engines = found.setdefault(row["model"], {})
        if "min_ms" in row:
            engines[row["engine"]] = row
    return found


def best_ratio(engines: Mapping[str, Row]) -> float | None:
    """How much longer the best other engine takes than we do; above one we are faster."""
    others = [row["min_ms"] for name, row in engines.items() if name != OURS]
    return min(others) / engines[OURS]["min_ms"] if others and OURS in engines else None


def share_of_roof(row: Row | None, machine: Mapping[str, Any]) -> float | None:
    """Arithmetic a second, as a share of what so many cores could do, each at its best alone.

    The roof of all at once would be lower where another process was running beside it.
    """
    if row is None or "flops" not in row:
        return None
    core = next(
        one["best"]
        for one in machine["roofs"]
        if one["what"] == "f32 multiply-add" and one["threads"] == 1
    )
    return row["flops"] / (row["min_ms"] * 1e6) / (core * row["threads"])


def milliseconds(value: float) -> str:
    """Three digits that count."""
    return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f}" if value >= 1 else f"{value:.3f}"


def latency_cells(engines: Mapping[str, Row], shown: Sequence[str]) -> list[str]:
    """One cell an engine, the fastest in bold."""
    fastest = min((row["min_ms"] for row in engines.values()), default=None)
    cells = []
    for name in shown:
        text = milliseconds(engines[name]["min_ms"]) if name in engines else "–"
        fast = name in engines and engines[name]["min_ms"] == fastest
        cells.append(f"**{text}**" if fast else text)
    return cells


def optional(value: float | None, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def table(models: Rows, machine: Mapping[str, Any], costs: Mapping[str, Row]) -> list[str]:
    """One line a model: each engine's latency, the ratio, share of the roof, compiling, error."""
    shown = [name for name in LABELS if any(name in engines for engines in models.values())]
    heads = [*(LABELS[name] for name in shown), "ratio", "of roof"]
    heads += ["compile s, cold / cached"] * any(model in costs for model in models) + ["error"]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "--:|" * len(heads)]
    for model, engines in models.items():
        ours = engines.get(OURS)
        cells = [*latency_cells(engines, shown), optional(best_ratio(engines), ".2f")]
        cells.append(optional(share_of_roof(ours, machine), ".0%"))
        if any(name in costs for name in models):
            spent = costs.get(model)
            cells.append(f"{spent['cold_s']:.1f} / {spent['cached_s']:.2f}" if spent else "–")
        cells.append(optional(ours["error"] if ours else None, ".0e"))
        lines.append(f"| {model.rpartition('/')[2]} | {' | '.join(cells)} |")
    ratios = [ratio for ratio in map(best_ratio, models.values()) if ratio is not None]
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines += ["", f"Geometric mean of the ratios: {mean:.2f} over {len(ratios)}."]
    return lines


def text(report: Mapping[str, Any]) -> str:
    """What stands between the marks."""
    models, machine = by_model(report["results"]), report["machine"]
    costs = {row["model"]: row for row in report["compile"]}
    rows = [row for engines in models.values() for row in engines.values()]
    threads = sorted({row["threads"] for row in rows})
    lines = [
        f"Milliseconds (minimum) at {' and '.join(map(str, threads))} threads, f32, on "
        f"{machine['description']}, {report['date']}; interleaved rounds in one run. The ratio is "
        "the best other engine's time to ours: above one, ours is faster. The roof is one core's "
        "measured rate of f32 multiply-adds times the threads. The error is relative to an "
        "output's largest magnitude. Other processes used "
        f"{max(row['others'] for row in rows):.0%} of a core at most.",
        "",
    ]
    whole = {name: row for name, row in models.items() if "/" not in name}
    kernels = {name: row for name, row in models.items() if "/" in name}
    if whole:
        lines += table(whole, machine, costs)
    if kernels:
        lines += ["", "<details><summary>Single kernels</summary>", ""]
        lines += [*table(kernels, machine, costs), "", "</details>"]
    return "\n".join(lines)


def rounded(value: Any) -> Any:
    """The same data, floats with a few digits only."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def record(report: Mapping[str, Any], folder: Path) -> Path:
    """Keep the figures; one line a result, so that two days can be compared."""
    path = folder / f"{report['date']}-{report['machine']['cpu']}.json"
    parts = []
    for key, value in rounded(report).items():
        lines = ",\n  ".join(map(json.dumps, value)) if isinstance(value, list) else ""
        parts.append(f' "{key}": ' + (f"[\n  {lines}\n ]" if lines else json.dumps(value)))
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    return path


def main() -> None:
    """Write the record and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("latency", type=Path, nargs="+", help="what latency.py wrote")
    parser.add_argument("--compile", type=Path, help="what compile_cost.py wrote")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="records' folder")
    parser.add_argument("--readme", type=Path, default=README)
    args = parser.parse_args()
    old = args.readme.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{args.readme} has no {BEGIN} ... {END}")
    report = merge([json.loads(path.read_text()) for path in args.latency])
    report["compile"] = json.loads(args.compile.read_text())["results"] if args.compile else []
    print(record(report, args.results))
    head, _, rest = old.partition(BEGIN)
    args.readme.write_text(f"{head}{BEGIN}\n{text(report)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
