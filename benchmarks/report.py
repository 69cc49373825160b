"""Measured figures → the day's record, and the page of each kind of processor.

    python benchmarks/report.py build/bench/models.json build/bench/kernels.json \\
        [--dynamic dynamic.json] [--compile compile.json] [--calls calls.json]
    python benchmarks/report.py            # the pages again, from the newest record of each kind

Tables are generated, never typed: a figure in them comes from the files given. All of it is kept in
`benchmarks/results/<date>-<cpu>.json`. x86-64 and AArch64 each have a page,
`docs/results/speed-<architecture>.md`, of the newest record of such a machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine_rows import (
    LABELS,
    OURS,
    Row,
    Rows,
    best_peer,
    best_ratio,
    by_model,
    is_wrong,
    means,
    of_roof,
    others,
    unusable,
)
from results_file import FOLDER, keep, read_results, revision
from tables import cell, details, markdown, milliseconds

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "results"
THEIR_CHOICE = "openvino-default"
NARROW = {
    "tilewright-bf16": "Tilewright, bf16",
    "tilewright-fp16": "Tilewright, fp16",
    THEIR_CHOICE: "OpenVINO, own precision",
}
"""Engines that need not work in f32: shown, but no part of the ratio."""
EXPLAINED = {
    "kernels": "Of roof: the least time that the measured peak arithmetic and bandwidth allow, "
    "divided by the time taken.",
    "compile_s": "Compile time is from an empty cache, load time from a filled one.",
    "run_mb": "Memory is the resident size of the process while it runs the model.",
}
"""What a figure means, said where there are such figures."""
MEMORY = (
    "Memory is what is resident: the most while compiling from an empty cache, the most while "
    "loading what that left in a fresh process (for engines that keep nothing, the same), and what "
    "is left while running."
)
DIGITS = 5


def merge(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several runs of `latency.py` on one machine as one; a later figure replaces an earlier."""
    for what, found in (
        ("on different machines", {report["machine"]["cpu"] for report in reports}),
        ("at different commits", {report["commit"] for report in reports}),
    ):
        if len(found) > 1:
            sys.exit(f"these were measured {what}: {', '.join(sorted(found))}")
    rows = {(r["model"], r["engine"]): r for report in reports for r in report["results"]}
    return {**reports[-1], "results": list(rows.values())}


def latency_table(
    models: Rows, labels: Mapping[str, str], absent: Mapping[tuple[str, str], str]
) -> str:
    """One line a model, one column an engine, the fastest in bold; then the ratio."""
    tried = {engine for model, engine in absent if model in models}
    tried |= {engine for engines in models.values() for engine in engines}
    shown = [name for name in labels if name in tried]
    lines = []
    for model, engines in models.items():
        fastest = min((row["min_ms"] for row in engines.values()), default=None)
        cells = [model.rpartition("/")[2]]
        for name in shown:
            missing = absent.get((model, name), "–")
            text = milliseconds(engines[name]["min_ms"]) if name in engines else missing
            bold = name in engines and engines[name]["min_ms"] == fastest
            cells.append(f"**{text}**" if bold else text)
        ratio = best_ratio(engines.values()).get(model)
        lines.append([*cells, cell(ratio, ".2f")])
    return markdown(["", *(labels[name] for name in shown), "ratio"], lines)


def summary_table(models: Rows) -> str:
    """One line a model: ours, the best other, their ratio, the roof, compiling, memory, error."""
    lines = []
    for model, engines in models.items():
        ours = engines.get(OURS, {})
        best = best_peer(engines)
        peer: Row = engines[best] if best else {}
        lines.append(
            [
                model.rpartition("/")[2],
                milliseconds(ours.get("min_ms")),
                milliseconds(peer.get("min_ms")) + (f" ({LABELS[best]})" if best else ""),
                cell(best_ratio(engines.values()).get(model), ".2f"),
                cell(of_roof(ours), ".0%"),
                f"{cell(ours.get('compile_s'), '.1f')} / {cell(ours.get('load_s'), '.2f')}",
                f"{cell(ours.get('run_mb'), '.0f')} / {cell(peer.get('run_mb'), '.0f')}",
                cell(ours.get("error"), ".0e"),
            ]
        )
    heads = ["", "ours, ms", "best other, ms", "ratio", "of roof"]
    heads += ["compile / load, s", "memory, ours / theirs, MB", "error"]
    return markdown(heads, lines)


def narrow_table(models: Rows) -> str:
    """Where precision may be lost: our fastest, beside what another engine chooses by itself."""
    lines = []
    for model, engines in models.items():
        ours = [name for name in NARROW if name.startswith(OURS) and name in engines]
        if not ours:
            continue
        best = min(ours, key=lambda name: engines[name]["min_ms"])
        rows = [engines[best], engines.get(THEIR_CHOICE, {})]
        times = [milliseconds(row.get("min_ms")) for row in rows]
        ratio = rows[1]["min_ms"] / rows[0]["min_ms"] if rows[1] else None
        errors = (cell(row.get("error"), ".0e") for row in rows)
        precision = best.rpartition("-")[2]
        lines.append([model, f"{times[0]} ({precision})", times[1], cell(ratio, ".2f"), *errors])
    heads = ["", "ours, ms", NARROW[THEIR_CHOICE] + ", ms", "ratio", "error, ours", "theirs"]
    return markdown(heads, lines) if lines else ""


def spread_table(models: Rows) -> str:
    """Minimum and median, compile seconds and memory of every engine on every model."""
    lines = []
    labels = LABELS | NARROW
    for model, engines in models.items():
        for name in (n for n in labels if n in engines):
            row = engines[name]
            lines.append(
                [
                    model.rpartition("/")[2],
                    labels[name],
                    milliseconds(row["min_ms"]),
                    milliseconds(row["median_ms"]),
                    cell(row.get("compile_s"), ".2f"),
                    cell(row.get("load_s"), ".2f"),
                    cell(row.get("compile_peak_mb"), ".0f"),
                    cell(row.get("load_peak_mb"), ".0f"),
                    cell(row.get("run_mb"), ".0f"),
                    cell(row.get("error"), ".0e"),
                ]
            )
    heads = ["", "engine", "min ms", "median ms", "compile s", "load s"]
    heads += ["compiling MB", "loading MB", "running MB", "error"]
    return markdown(heads, lines, left=2)


def failures(results: Iterable[Row]) -> str:
    """What did not run or answered something else, and why."""
    lines = [
        [row["model"].rpartition("/")[2], row["engine"], row["failure"].replace("|", "\\|")]
        for row in results
        if "failure" in row
    ]
    lines += [
        [row["model"].rpartition("/")[2], row["engine"], f"wrong: error {_error(row)}"]
        for row in results
        if is_wrong(row)
    ]
    return markdown(["", "engine", "reason"], lines, left=3) if lines else ""


def _error(row: Row) -> str:
    return "not finite" if row["error"] is None else f"{row['error']:.0e}"


def introduction(report: Mapping[str, Any]) -> str:
    """How the figures were made."""
    good = [row for row in report["results"] if "min_ms" in row]
    threads = sorted({row["threads"] for row in good})
    references = dict.fromkeys(row.get("reference", "ONNX Runtime") for row in good)
    sentences = [
        f"Milliseconds (minimum) at {' and '.join(map(str, threads))} "
        f"thread{'' if threads == [1] else 's'}, f32, on "
        f"{report['machine']['description']}, {report['date']}; one process an engine, in "
        "interleaved rounds.",
        "The ratio is the best other engine's time to ours: above one, ours is faster.",
        *(text for key, text in EXPLAINED.items() if any(key in row for row in good)),
        "The error is relative to an output's largest magnitude, against "
        f"{' or '.join(references)}.",
        f"Other processes used {others(good):.0%} of a core at most.",
        f"Measured {_at(report)}.",
        *([report["note"]] if "note" in report else []),
    ]
    return " ".join(sentences)


def _at(report: Mapping[str, Any]) -> str:
    return f"{'at ' if report.get('commit') else ''}{revision(report)}"


def page_text(report: Mapping[str, Any]) -> str:
    """The page with everything."""
    models, absent = by_model(report["results"]), unusable(report["results"])
    title = f"# Speed on {architecture(report)}"
    parts = [title, "<!-- Written by benchmarks/report.py; run `make bench` to renew. -->"]
    parts.append(introduction(report))
    versions = report["machine"].get("packages", {})
    if versions:
        parts.append("Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + ".")
    for title, inside in (("Models", False), ("Kernels", True)):
        some = {name: rows for name, rows in models.items() if ("/" in name) == inside}
        if some:
            parts += [f"## {title}", summary_table(some), means(some)]
            parts += [f"### {title}, all engines", latency_table(some, LABELS | NARROW, absent)]
            parts.append(details("Median, compiling, memory, error", MEMORY, spread_table(some)))
            narrow = narrow_table(some)
            parts += [f"### {title}, in a lower precision", narrow] if narrow else []
    parts += list(extra_sections(report))
    missing = failures(report["results"])
    parts += ["## What did not run, or not right", missing] if missing else []
    return "\n\n".join(filter(None, parts)) + "\n"


def extra_sections(report: Mapping[str, Any]) -> Iterable[str]:
    """Dynamic sizes, compiling, calls: what the other programs measured."""
    if report.get("dynamic"):
        yield "## Symbolic sizes"
        heads = ["", "engine", "fixed ms", "symbolic ms", "symbolic / fixed"]
        yield markdown(heads, [_dynamic_cells(row) for row in report["dynamic"]])
    if report.get("compile"):
        yield "## Compiling"
        heads = ["", "cold s", "cached s", "file MiB", "peak MiB", "kernels", "steps"]
        yield markdown(heads, [_compile_cells(row) for row in report["compile"]])
    if report.get("calls"):
        yield "## What a call costs\n\nA two-layer MLP of 64 units, batch 1, one thread."
        keys = ("min_us", "median_us")
        rows = [[r["how"], *(cell(r[key], ".2f") for key in keys)] for r in report["calls"]]
        yield markdown(["", "min µs", "median µs"], rows)


def _dynamic_cells(row: Row) -> list[str]:
    ratio = cell(row["dynamic_ms"] / row["static_ms"], ".2f")
    times = [milliseconds(row[key]) for key in ("static_ms", "dynamic_ms")]
    return [row["model"], row["engine"], *times, ratio]


def _compile_cells(row: Row) -> list[str]:
    seconds = [cell(row[key], ".2f") for key in ("cold_s", "cached_s")]
    sizes = [cell(row[key], ".0f") for key in ("file_mib", "peak_mib")]
    return [row["model"], *seconds, *sizes, str(row["kernels"]), str(row["steps"])]


def rounded(value: Any) -> Any:
    """The same data, floats with a few digits only."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def slim(row: Row) -> Row:
    """A row of the record: of each kernel only its share of the time and of the roof."""
    if "kernels" not in row:
        return row
    keys = ("name", "calls", "min_ms", "of_roof", "bound")
    return {**row, "kernels": [{key: k[key] for key in keys} for k in row["kernels"]]}


def record(report: Mapping[str, Any], folder: Path) -> Path:
    """Keep the figures."""
    path = folder / f"{report['date']}-{report['machine']['cpu']}.json"
    keep(path, rounded({**report, "results": [slim(row) for row in report["results"]]}))
    return path


def architecture(report: Mapping[str, Any]) -> str:
    """The kind of processor of a record."""
    kind: str = report["machine"]["architecture"]
    return kind


def newest(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The newest record of each kind of processor."""
    records = map(read_results, sorted(folder.glob("20??-??-??-*.json")))
    return {architecture(one): one for one in records}


def results_in(path: Path | None) -> list[Any]:
    """The results in a file, none where there is no file."""
    return json.loads(path.read_text())["results"] if path is not None and path.exists() else []


def measured(args: argparse.Namespace) -> Path:
    """The record of what was measured."""
    report = merge([read_results(path) for path in args.latency if path.exists()])
    for key in ("dynamic", "compile", "calls"):
        report[key] = results_in(getattr(args, key))
    return record(report, args.results)


def main() -> None:
    """Write the record and the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("latency", type=Path, nargs="*", help="what latency.py wrote")
    parser.add_argument("--dynamic", type=Path, help="what dynamic.py wrote")
    parser.add_argument("--compile", type=Path, help="what compile_cost.py wrote")
    parser.add_argument("--calls", type=Path, help="what calls.py wrote")
    parser.add_argument("--results", type=Path, default=FOLDER, help="records' folder")
    parser.add_argument("--pages", type=Path, default=PAGES, help="the pages' folder")
    args = parser.parse_args()
    if args.latency:
        print(measured(args))
    for kind, report in newest(args.results).items():
        (args.pages / f"speed-{kind}.md").write_text(page_text(report))


if __name__ == "__main__":
    main()
