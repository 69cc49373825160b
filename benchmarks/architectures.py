"""Tiny random-weight instances of many `transformers` architectures: exported, run, compared.

    python benchmarks/architectures.py                  # all of them
    python benchmarks/architectures.py bert mixtral     # some
    python benchmarks/architectures.py --json FILE --page docs/results/architectures.md

Each is exported to ONNX by torch, answered by us and by ONNX Runtime, and the answers are compared;
a model that torch cannot export or ONNX Runtime cannot load is told apart from one that we answer
wrongly. Every architecture gets a process of its own, so that one that dies costs only itself.
`benchmarks/setup.sh` makes the environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tiny import FAMILIES, TINY

CACHE = Path(__file__).parent / "results" / "cache" / "tiny"
TOLERANCE = 1e-3
SECONDS = 600


@dataclass(frozen=True)
class Answer:
    """How one architecture fared: `outcome` is "same", "differs", or who failed and how."""

    name: str
    family: str
    outcome: str
    nodes: int = 0
    compile_seconds: float = 0.0
    error: float = 0.0


def export(name: str, folder: Path) -> None:
    """Write `model.onnx` and `inputs.npz`."""
    import contextlib
    import io
    import logging
    import warnings

    import torch

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    torch.manual_seed(0)
    module, inputs = TINY[name]()
    module = module.eval().requires_grad_(False)
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            args=tuple(inputs.values()),
            f=str(folder / "fresh.onnx"),
            dynamo=True,
            external_data=False,
            input_names=list(inputs),
        )
    np.savez(folder / "inputs.npz", **{k: v.numpy() for k, v in inputs.items()})
    (folder / "fresh.onnx").replace(folder / "model.onnx")


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, relative to the largest expected magnitude; NaN must meet NaN."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    same = np.array_equal(np.where(finite, 0, got), np.where(finite, 0, want), equal_nan=True)
    if got.shape != want.shape or not same:
        return float("inf")
    if not finite.any():
        return 0.0
    largest = max(float(np.abs(want[finite]).max()), 1e-30)
    return float(np.abs(got[finite] - want[finite]).max()) / largest


def compare(name: str, folder: Path) -> Answer:
    """Answer with both engines."""
    import onnx
    import onnxruntime

    import tilewright as tw

    path, family = str(folder / "model.onnx"), FAMILIES[name]
    nodes = len(onnx.load(path).graph.node)
    inputs = dict(np.load(folder / "inputs.npz"))
    try:
        options = onnxruntime.SessionOptions()
        # with its own optimisations on, its answers move by up to 2e-3 (bit)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        wanted = {v.name for v in session.get_inputs()}
        feed = {k: v for k, v in inputs.items() if k in wanted}
        expected = session.run(None, feed)
    except Exception as error:  # whatever the other engine raises is its outcome
        return Answer(name, family, f"ONNX Runtime: {_line(error)}", nodes)
    if any(v.size > 1 and v.min() == v.max() for v in expected):
        return Answer(name, family, "proves nothing: an output is the same everywhere", nodes)
    start = time.perf_counter()
    try:
        with tw.compile(path, cache=False) as model:
            taken = {port.name for port in model.inputs}
            found = model.run({k: v for k, v in feed.items() if k in taken})
    except tw.Error as error:
        return Answer(name, family, f"{type(error).__name__}: {_line(error)}", nodes)
    seconds = time.perf_counter() - start
    names = [v.name for v in session.get_outputs()]
    worst = max(relative_error(found[k], want) for k, want in zip(names, expected, strict=True))
    outcome = "same" if worst <= TOLERANCE else "differs"
    return Answer(name, family, outcome, nodes, round(seconds, 2), worst)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def answer(name: str, folder: Path) -> Answer:
    """Export unless that is done, and compare."""
    if not (folder / "model.onnx").exists():
        try:
            export(name, folder)
        except Exception as error:
            return Answer(name, FAMILIES[name], f"torch cannot export it: {type(error).__name__}")
    return compare(name, folder)


def in_a_process(name: str) -> Answer:
    """`answer` in a process of its own."""
    command = [sys.executable, __file__, "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Answer(name, FAMILIES[name], f"took more than {SECONDS} s")
    if done.returncode:
        return Answer(name, FAMILIES[name], f"died: {_line(Exception(done.stderr[-200:]))}")
    return Answer(**json.loads(done.stdout.splitlines()[-1]))


def page(answers: list[Answer]) -> str:
    """The table of all answers."""
    same = [a for a in answers if a.outcome == "same"]
    head = (
        f"{len(same)} of {len(answers)} architectures give the answers of ONNX Runtime without its "
    )
    head += "graph optimisations; written by `benchmarks/architectures.py --page`."
    lines = [head, "", "| family | architecture | nodes | outcome | largest relative error |"]
    lines += ["|---|---|---|---|---|"]
    ordered = sorted(answers, key=lambda a: (a.family, a.name))
    return "\n".join(lines + [f"| {a.family} | {a.name} | {_figures(a)} |" for a in ordered])


def _figures(a: Answer) -> str:
    """Nodes, outcome and error; what was not compared has none."""
    compared = a.outcome in ("same", "differs")
    nodes, error = a.nodes or "–", f"{a.error:.0e}" if compared else "–"
    return f"{nodes} | {a.outcome} | {error}"


def main() -> None:
    """Run the architectures named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="architectures (default: all)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="write the table into this page")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(answer(options.one, CACHE / options.one))))
        return
    unknown = [name for name in options.names if name not in TINY]
    if unknown:
        parser.error(f"unknown architecture {', '.join(unknown)}; there are {', '.join(TINY)}")
    answers: list[Answer] = []
    for name in options.names or TINY:
        answers.append(in_a_process(name))
        done = answers[-1]
        print(f"{done.family:12} {name:24} {done.outcome} {done.error:.1e}", flush=True)
    results: list[Mapping[str, object]] = [asdict(a) for a in answers]
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if options.page:
        options.page.write_text(f"# Architectures\n\n{page(answers)}\n")
    print(f"{sum(a.outcome == 'same' for a in answers)} of {len(answers)} the same")


if __name__ == "__main__":
    main()
