"""Tune whole models for some minutes each, and measure them before and after, in turns.

    python benchmarks/zoo.py                       # write the models first
    python benchmarks/tuned_models.py --minutes 10 --records tuned --json tuned_models.json --resume
    python benchmarks/tuned_models.py resnet50 gpt2 --minutes 2 --records tuned

Each model has a file of records of its own in the folder `--records`. The figures are written after
every model; `--resume` leaves out models that are in the file and came through. One whose tuning
was cut off begins with the records that it has, and gets all of its minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latency import add_arguments, known_rows, write
from machine import describe_machine
from tuning import OURS, OURS_TUNED, gain, measured

MODELS = (
    "resnet50",
    "mobilenet_v2",
    "efficientnet_b0",
    "densenet121",
    "convnext_t",
    "vit_b16",
    "unet",
    "bert_base",
    "gpt2",
    "whisper_encoder",
)
# Beside the budget: finding kernels, comparisons under way at its end, the model before and after.
GRACE = 1800.0


def tune(model: Path, records: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Tune a model; what the tuner says of it, but for where files are."""
    command = [sys.executable, "-m", "tilewright", "tune", model, "--db", records, "--json"]
    options = ["--budget", f"{round(60 * arguments.minutes)}s", "--threads", arguments.threads]
    done = subprocess.run(
        list(map(str, [*command, *options, "--seed", arguments.seed])),
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * arguments.minutes + GRACE,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    told = json.loads(done.stdout)
    return {name: said for name, said in told.items() if name not in ("model", "records")}


def before_and_after(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One model: what tuning did, and the rows of both."""
    folder = arguments.cache.resolve() / name
    records = arguments.records.resolve() / f"{name}.db"
    records.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"model": name, "minutes": arguments.minutes, "rows": []}
    try:
        result["tuning"] = tune(folder / "model.onnx", records, arguments)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return {**result, "failed": str(error)}
    rows = measured(folder, [OURS, OURS_TUNED], arguments, records)
    return {**result, "rows": list(rows.values())}


def line(result: Mapping[str, Any]) -> str:
    """One model as text."""
    if "failed" in result:
        return f"{result['model']} failed: {result['failed']}"
    told, rows = result["tuning"], result["rows"]
    won = sum(kernel["gain"] is not None for kernel in told["kernels"])
    cells = ", ".join(f"{row['engine']} {row['min_ms']:.3f} ms" for row in rows if "min_ms" in row)
    return (
        f"{result['model']}: {cells}, {gain([result], OURS):.3f} times as fast; {told['trials']} "
        f"trials, {told['seconds']:.0f} s, {won} of {len(told['kernels'])} kernels tuned"
    )


def main() -> None:
    """Tune and measure, print a line a model, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"models (default: {', '.join(MODELS)})")
    add_arguments(parser)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each model")
    parser.add_argument("--records", type=Path, required=True, help="a folder")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    machine = describe_machine((1, arguments.threads))
    results = [row for row in known_rows(arguments) if "failed" not in row]
    for result in results:
        print(line(result))
    known = {result["model"] for result in results}
    for name in (n for n in arguments.names or MODELS if n not in known):
        results.append(before_and_after(name, arguments))
        print(line(results[-1]), flush=True)
        if arguments.json:
            write(arguments.json, machine, results)
    print(f"after against before: {gain(results, OURS):.3f} (geometric mean)")


if __name__ == "__main__":
    main()
