"""Measured figures → the table in the README, between its two `measured` marks.

    python benchmarks/latency.py --json latency.json
    python benchmarks/compile_cost.py --json compile.json
    python benchmarks/report.py latency.json compile.json

The table is generated, never typed: a figure in it comes from the files given.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from tilewright.target.cpu import host

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


def table(latency: dict[str, Any], cost: dict[str, Any]) -> str:
    """One line a model: both engines' latency, the ratio, compile seconds, the error."""
    rows = {(r["model"], r["engine"]): r for r in latency["results"] if "min_ms" in r}
    costs = {r["model"]: r for r in cost["results"]}
    models = list(dict.fromkeys(model for model, _ in rows))
    threads = next(iter(rows.values()))["threads"]
    lines = [
        f"Milliseconds (minimum) at {threads} threads, f32, on {host().describe()}; "
        "interleaved rounds in one run. The error is relative to an output's largest magnitude.",
        "",
        "| model | Tilewright | ONNX Runtime | speed-up | compile s, cold / cached | error |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    ratios = []
    for model in models:
        ours, theirs = rows.get((model, "tilewright")), rows.get((model, "onnxruntime"))
        if ours is None or theirs is None:
            continue
        ratio = theirs["min_ms"] / ours["min_ms"]
        ratios.append(ratio)
        spent = costs.get(model)
        seconds = f"{spent['cold_s']:.1f} / {spent['cached_s']:.2f}" if spent else ""
        lines.append(
            f"| {model} | {ours['min_ms']:.1f} | {theirs['min_ms']:.1f} | {ratio:.2f} "
            f"| {seconds} | {ours['error']:.0e} |"
        )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines += ["", f"Geometric mean of the speed-ups: {mean:.2f}."]
    return "\n".join(lines)


def main() -> None:
    """Write the table into the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("latency", type=Path)
    parser.add_argument("compile", type=Path)
    args = parser.parse_args()
    text = README.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{README} has no {BEGIN} ... {END}")
    measured = table(json.loads(args.latency.read_text()), json.loads(args.compile.read_text()))
    head, _, rest = text.partition(BEGIN)
    README.write_text(f"{head}{BEGIN}\n{measured}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
