"""What documents show of results files: one function a mark of `figures.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from engine_rows import LABELS, by_model
from report import newest
from results_file import FOLDER, Results, origin, read_results
from tables import cell, markdown

OURS, TUNED, THEIRS = "tilewright", "tilewright tuned", "tvm-tuned"
MLP = "kernels/mlp_1x64x64"
Row = Mapping[str, Any]


def bf16() -> str:
    """Models in bf16 beside OpenVINO in its default precision, on a machine with AMX."""
    found = read_results(FOLDER / "bf16-emeraldrapids.json")
    heads = ["model", "threads", "ours, ms", "OpenVINO, ms", "ratio", "of medians", "error"]
    heads.append("OpenVINO's")
    lines = []
    for row in found["results"]:
        ours, theirs = row["ours_ms"], row["openvino_ms"]
        ratios = (f"{theirs[key] / ours[key]:.2f}" for key in ("min", "median"))
        errors = (f"{row[key]:.1e}" for key in ("ours_error", "openvino_error"))
        times = (f"{one['min']:.3g}" for one in (ours, theirs))
        lines.append([row["model"], f"{row['threads']}", *times, *ratios, *errors])
    about = f"Minima; {origin(found)}. {found['note']}"
    return f"{markdown(heads, lines)}\n\n{about}"


def compile_cost() -> str:
    """What compiling two models with symbolic sizes costs."""
    found = read_results(FOLDER / "compile-cascadelake.json")
    heads = ["model", "cold, s", "cached, s", "kernels", "most memory, MiB"]
    lines = [
        [
            row["model"],
            *(f"{row[key]:.2f}" for key in ("cold_s", "cached_s")),
            f"{row['kernels']}",
            f"{row['peak_mib']:.0f}",
        ]
        for row in found["results"]
    ]
    about = " ".join([f"{origin(found)}.", *filter(None, [found.get("note")])])
    return f"{markdown(heads, lines)}\n\n{about}"


def gpu_calls() -> str:
    """What a call with a tensor on a GPU costs the host."""
    found = read_results(FOLDER / "calls-h200.json")
    ways = list(found["results"][0]["us"])
    lines = [
        [
            row["model"],
            f"{row['kernels']}",
            *(f"{row['us'][way]['least']:.1f} to {row['us'][way]['median']:.1f}" for way in ways),
        ]
        for row in found["results"]
    ]
    about = f"Microseconds, the least and the median of 20 rows of 100 calls; {origin(found)}."
    return f"{markdown(['model', 'kernels', *(f'`{w}`' for w in ways)], lines)}\n\n{about}"


def index_checks() -> str:
    """What index checks cost, on each machine that it was measured on."""
    parts = []
    for path in sorted(FOLDER.glob("index-checks-*.json")):
        found = read_results(path)
        heads = ["model", "with checks, ms", "without, ms", "cost", "by minima"]
        lines = [
            [
                row["model"],
                *(f"{row['ms'][checks]:.4g}" for checks in ("on", "off")),
                *(f"{row[key] - 1:+.2%}" for key in ("cost_median", "cost_min")),
            ]
            for row in found["results"]
        ]
        about = " ".join([f"Medians; {origin(found)}.", *filter(None, [found.get("note")])])
        parts.append(f"{markdown(heads, lines)}\n\n{about}")
    return "\n\n".join(parts)


def mlp_memory() -> str:
    """What is resident while a two-layer MLP runs, where it was measured last."""
    measured = {
        str(one["date"]): one for one in newest().values() if MLP in by_model(one["results"])
    }
    found = measured[max(measured)]
    rows = by_model(found["results"])[MLP]
    ours, theirs = (f"{rows[name]['run_mb']:.0f}" for name in (OURS, "onnxruntime"))
    return f"{ours} MB resident, with ONNX Runtime {theirs} ({origin(found)})"


def metaschedule() -> str:
    """Twelve operators beside TVM's MetaSchedule; rows that win by Winograd are named."""
    found = read_results(FOLDER / "tuning-neoverse-n1.json")
    engines = (OURS, TUNED, THEIRS, "onnxruntime", "openvino")
    heads = ["", "algorithm", "built in", "tuned", "MetaSchedule", "ONNX Runtime", "OpenVINO"]
    heads += ["tuning, s", "MetaSchedule's, s", "as fast as that after, s"]
    lines = []
    for one in found["results"]:
        times = _times(one["rows"])
        seconds = [cell(one["tuning"][tuner]["seconds"], ".0f") for tuner in (TUNED, THEIRS)]
        after = one["level_after_s"]
        level = "not by its own clock" if after is None else f"{after:.0f}"
        cells = [f"{times[engine]:.3f}" for engine in engines]
        lines.append([one["model"], _algorithm(one), *cells, *seconds, level])
    ratios = {one["model"]: _ratio(one, THEIRS) for one in found["results"]}
    alike = [_ratio(one, THEIRS) for one in found["results"] if _algorithm(one) == "direct"]
    text = (
        f"Milliseconds, minima; {origin(found)}. Ours is {geometric_mean(ratios.values()):.2f} "
        f"times as fast as MetaSchedule's by the geometric mean of all {len(ratios)}, "
        f"{geometric_mean(alike):.2f} over the {len(alike)} that compute the same algorithm: the "
        "other rows win by Winograd, which MetaSchedule does not search. It is "
        f"{geometric_mean(_ratio(one, OURS) for one in found['results']):.2f} times as fast as the "
        "built-in schedules."
    )
    return f"{markdown(heads, lines, left=2)}\n\n{text}"


def _algorithm(one: Row) -> str:
    kernels = next(row for row in one["rows"] if row["engine"] == TUNED)["kernels"]
    return "Winograd" if any("winograd" in kernel["name"] for kernel in kernels) else "direct"


def _ratio(one: Row, over: str) -> float:
    times = _times(one["rows"])
    return times[over] / times[TUNED]


def _times(rows: Iterable[Row], key: str = "min_ms") -> dict[str, float]:
    return {row["engine"]: row[key] for row in rows if key in row}


def tuned_models() -> str:
    """Models before and after ten minutes of tuning."""
    found = read_results(FOLDER / "tuned-models-neoverse-n1.json")
    lines, gains = [], []
    for one in found["results"]:
        told = one["tuning"]
        compared = told["latency"]
        kept = compared["result"] == "faster"
        gains.append(compared["before_ms"] / compared["after_ms"] if kept else 1.0)
        won = sum(kernel["gain"] is not None for kernel in told["kernels"]) if kept else 0
        after = compared["after_ms" if kept else "before_ms"]
        cells = [f"{ms:.4g}" for ms in (compared["before_ms"], after)]
        cells += [f"{gains[-1]:.3f}" if kept else "1", f"{won} of {len(told['kernels'])}"]
        lines.append([one["model"], *cells, str(told["trials"])])
    lines.append(["geometric mean", "", "", f"{geometric_mean(gains):.3f}", "", ""])
    heads = ["", "built in, ms", "tuned, ms", "ratio", "kernels changed", "trials"]
    return f"{markdown(heads, lines)}\n\n{origin(found)}."


def recurrent() -> str:
    """Twenty recurrent models beside ONNX Runtime."""
    found = read_results(FOLDER / "recurrent-cascadelake.json")
    heads = ["model", "ours", LABELS["onnxruntime"], "ratio", "by minima", "error"]
    lines, ratios = [], []
    for model, rows in _by_model(found["results"]).items():
        medians, minima = _times(rows, "median_ms"), _times(rows)
        ratios.append(medians["onnxruntime"] / medians[OURS])
        cells = [f"{medians[engine]:.3f}" for engine in (OURS, "onnxruntime")]
        cells += [f"{ratios[-1]:.2f}", f"{minima['onnxruntime'] / minima[OURS]:.2f}"]
        error = next(row["error"] for row in rows if row["engine"] == OURS)
        lines.append([model, *cells, f"{error:.0e}"])
    lines.append(["geometric mean", "", "", f"{geometric_mean(ratios):.2f}", "", ""])
    return f"{markdown(heads, lines)}\n\nMilliseconds, medians; {origin(found)}."


def recurrent_before() -> str:
    """The loops that had run on the host."""
    found = read_results(FOLDER / "recurrent-cascadelake.json")
    now, before = _by_model(found["results"]), _by_model(found["before"]["results"])
    lines = [
        [model, *(f"{_times(rows, 'median_ms')[OURS]:.3f}" for rows in (before[model], now[model]))]
        for model in before
    ]
    heads = ["model", f"before, commit {found['before']['commit']}", f"commit {found['commit']}"]
    return markdown(heads, lines)


def revisions() -> str:
    """Models before and after the renaming."""
    found = read_results(FOLDER / "revisions-2026-11-17.json")
    return _two_commits(found, found["results"], mean=True)


def revisions_again() -> str:
    """The models that were furthest from 1, with more rounds."""
    found = read_results(FOLDER / "revisions-2026-11-17.json")
    return _two_commits(found, found["again"], mean=False)


def _two_commits(found: Results, results: Sequence[Row], mean: bool) -> str:
    """A table of two commits."""
    lines, least, typical = [], [], []
    for model, rows in _by_model(results).items():
        before, after = rows
        least.append(before["min_ms"] / after["min_ms"])
        typical.append(before["median_ms"] / after["median_ms"])
        times = [f"{row['min_ms']:.3f}" for row in (before, after)]
        lines.append([model, *times, f"{least[-1]:.2f}", f"{typical[-1]:.2f}"])
    if mean:
        means = [f"{geometric_mean(one):.3f}" for one in (least, typical)]
        lines.append(["geometric mean", "", "", *means])
    heads = ["model", "before, ms", "after, ms", "minima, before / after", "medians"]
    return f"{markdown(heads, lines)}\n\n{origin(found)}."


def conformance() -> str:
    """ONNX's own tests: what passes by kind, and what does not with its reason."""
    found = read_results(FOLDER / "conformance.json")
    rows = found["results"]
    total = ["all", *(f"{sum(row[key] for row in rows):,}" for key in ("cases", "pass"))]
    lines = [[row["kind"], f"{row['cases']:,}", f"{row['pass']:,}"] for row in rows]
    left = [[case, why] for row in rows for case, why in row["left"].items()]
    parts = [
        f"The backend tests of onnx {found['onnx']}; {origin(found)}.",
        markdown(["kind", "cases", "pass"], [*lines, total]),
        markdown(["does not pass", "why"], left, left=2) if left else "",
    ]
    return "\n\n".join(filter(None, parts))


def _by_model(results: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in results:
        found.setdefault(row["model"].rpartition("/")[2], []).append(row)
    return found
