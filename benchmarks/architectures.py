"""Tiny random-weight instances of many `transformers` architectures: exported, run, compared.

    python benchmarks/architectures.py                  # all of them
    python benchmarks/architectures.py bert mixtral     # some
    python benchmarks/architectures.py --json FILE --resume
    python benchmarks/architectures.py --page           # the page again, from the results file

Each is exported to ONNX by torch, answered by us and by ONNX Runtime, and the answers are compared;
a model that torch cannot export or ONNX Runtime cannot load is told apart from one that we answer
wrongly. Every architecture gets a process of its own, so that one that dies costs only itself. The
answers are written after each; all of them in `benchmarks/results/architectures.json` make the page
`docs/results/architectures.md`. `benchmarks/setup.sh` makes the environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from machine import describe_machine
from results_file import FOLDER, Results, origin, read_results, write_results
from revision import commit
from tables import cell, markdown
from tiny import FAMILIES, TINY

from tilewright.core.worker.crash import reason

CACHE = FOLDER / "cache" / "tiny"
RESULTS = FOLDER / "architectures.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "architectures.md"
TOLERANCE = 1e-3
SECONDS = 600


@dataclass(frozen=True)
class Answer:
    """How one architecture fared: `outcome` is "same", "differs", or who failed and how."""

    name: str
    family: str
    outcome: str
    nodes: int | None = None
    compile_seconds: float | None = None
    error: float | None = None


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
    if not np.isfinite(worst):
        return Answer(name, family, "differs: another shape, or not finite elsewhere", nodes)
    outcome = "same" if worst <= TOLERANCE else "differs"
    return Answer(name, family, outcome, nodes, round(seconds, 2), worst)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def answer(name: str, folder: Path) -> Answer:
    """Export unless that is done, and compare."""
    if not (folder / "model.onnx").exists():
        try:
            export(name, folder)
        except Exception as error:
            why = f"torch cannot export it: {type(error).__name__}"
            return Answer(name, FAMILIES[name], why)
    return compare(name, folder)


def in_a_process(name: str) -> Answer:
    """`answer` in a process of its own."""
    command = [sys.executable, __file__, "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Answer(name, FAMILIES[name], f"took more than {SECONDS} s")
    if done.returncode:
        return Answer(name, FAMILIES[name], f"died: {reason(done.stderr)}")
    return Answer(**json.loads(done.stdout.splitlines()[-1]))


def page(results: Results) -> str:
    """The page of all answers."""
    answers = [Answer(**row) for row in results["results"]]
    same = sum(one.outcome == "same" for one in answers)
    heads = ["family", "architecture", "nodes", "outcome", "largest relative error"]
    ordered = sorted(answers, key=lambda one: (one.family, one.name))
    parts = [
        "# Architectures",
        "<!-- Written by benchmarks/architectures.py. -->",
        f"{same} of {len(answers)} architectures give the answers of ONNX Runtime without its "
        f"graph optimisations; {origin(results)}.",
        markdown(heads, [_cells(one) for one in ordered], left=2),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(one: Answer) -> list[str]:
    """A line of the table; what was not compared has no error."""
    nodes = "–" if one.nodes is None else str(one.nodes)
    return [one.family, one.name, nodes, one.outcome, cell(one.error, ".0e")]


def known(path: Path) -> list[Answer]:
    """The answers that an earlier run at this commit left."""
    earlier = read_results(path) if path.exists() else {"commit": commit(), "results": []}
    if earlier["commit"] != commit():
        sys.exit(f"{path} is of commit {earlier['commit']}, this is {commit()}")
    return [Answer(**row) for row in earlier["results"]]


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="architectures (default: all)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the answers there")
    parser.add_argument("--resume", action="store_true", help="keep what is in that file")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in TINY]
    if unknown:
        parser.error(f"unknown architecture {', '.join(unknown)}; there are {', '.join(TINY)}")
    return given


def main() -> None:
    """Run the architectures named on the command line."""
    given = arguments()
    if given.page:
        PAGE.write_text(page(read_results(RESULTS)))
        return
    if given.one:
        print(json.dumps(asdict(answer(given.one, CACHE / given.one))))
        return
    answers = known(given.json) if given.resume and given.json else []
    done = {one.name for one in answers}
    for name in (n for n in given.names or TINY if n not in done):
        one = in_a_process(name)
        answers.append(one)
        print(f"{one.family:12} {name:24} {one.outcome} {cell(one.error, '.1e')}", flush=True)
        if given.json:
            machine = describe_machine(())
            write_results(given.json, machine, results=[asdict(a) for a in answers])
    print(f"{sum(a.outcome == 'same' for a in answers)} of {len(answers)} the same")


if __name__ == "__main__":
    main()
