"""All that is shown on a GPU: kernels and models beside their peers, and that they are right.

    python benchmarks/gpu/all.py [PART ...] [--json benchmarks/results/gpu.json]
    python benchmarks/gpu/all.py models --seconds 500 --missing    # what earlier calls left
    python benchmarks/gpu/all.py page     # docs/results/gpu.md from the figures, without a GPU

Every part is a process with a limit of time. What it has written is in the file a few seconds
later, whatever happens to this process, and what earlier calls have measured of other parts stays
there: parts can be measured one at a time, and models some at a time. Each part has the date and
the commit that it was measured at; in a copy that is no repository BENCH_COMMIT names it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where models are exported to, for as long as the machine lasts.
WORK = Path(tempfile.gettempdir()) / "tilewright-models"
TOLD_EVERY = 5.0
WRITING = threading.Lock()
# Set when this process is to end: then parts in other threads do.
STOPPED = threading.Event()

Figures = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One process: a script with its arguments, and how many seconds it may take.

    With `adds`, its figures are added to those of earlier calls. What is not `timed` may run beside
    others that are not.
    """

    script: str
    arguments: tuple[str, ...]
    limit: float
    tool: str = ""
    adds: bool = False
    timed: bool = True

    def command(self, result: Path) -> list[str]:
        """What is run; figures go to `result`."""
        words = [sys.executable, "-u", str(HERE / self.script), *self.arguments]
        if self.tool:
            checks = ["--print-limit", "5", "--error-exitcode", "9"]
            return ["compute-sanitizer", "--tool", self.tool, *checks, *words]
        return [*words, "--json", str(result)]


def _models(limit: float, *given: str) -> Part:
    return Part("models.py", ("--work", str(WORK), *given), limit, adds=True)


COLD = ("--workers", "1", "--batches", "1", "--precisions", "fp16", "--engines", "ours,inductor")
CHECKED = ("kernels", "--shapes", "100", "--precisions", "f32", "fp16")
# The tools of compute-sanitizer.
SANITIZERS = ("memcheck", "racecheck", "synccheck")
PARTS = {
    "rows": Part("rows.py", (), 100),
    "products": Part("products.py", ("--shapes", "100"), 90),
    "integers": Part("integers.py", ("--shapes", "100"), 60),
    "attention": Part("attention.py", ("--shapes", "100"), 90),
    "models": _models(400, "--engines", "ours,eager,inductor"),
    "jax": _models(300, "--engines", "jax"),
    "cold": _models(120, "resnet50", *COLD),
    "leaks": Part("leaks.py", (), 60),
    "shapes": Part("check.py", CHECKED, 240, timed=False),
    **{tool: Part("sanitize.py", ("--shapes", "1"), 200, tool, timed=False) for tool in SANITIZERS},
}


def _narrowed(name: str, given: argparse.Namespace) -> Part:
    """A part; of models, only those that are asked for, if any are, or those that are missing."""
    part = PARTS[name]
    if not part.adds or name == "cold":
        return part
    chosen = [model for model in given.models.split(",") if model]
    more = (*chosen, "--precisions", given.precisions, *["--missing"] * given.missing)
    return replace(part, arguments=(*more, *part.arguments))


def limited(command: list[str], out: TextIO, limit: float, told: Callable[[], None]) -> str:
    """Run a command, and end it with all processes that it has started when its time is over.

    Every few seconds `told` is called.
    """
    end = time.monotonic() + limit
    process = subprocess.Popen(
        command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
    )
    try:
        while (left := end - time.monotonic()) > 0 and not STOPPED.is_set():
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(min(left, TOLD_EVERY))
                return "done" if status == 0 else f"status {status}"
            told()
        return "interrupted" if left > 0 else f"stopped after {limit:.0f} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measure(part: Part, log: Path, before: Figures, keep: Callable[[Figures], None]) -> None:
    """Run one part and `keep` its figures, seconds, and how it ended: now and then, and at last."""
    result = Path(tempfile.mkdtemp()) / "figures.json"
    if part.adds:
        result.write_text(json.dumps(before))
    start = time.monotonic()

    def told(ended: str = "stopped with all the others") -> None:
        said = log.read_text(errors="replace")
        found = sanitized(said) if part.tool else _read(result)
        seconds = round(time.monotonic() - start, 1)
        keep({"ended": ended, "seconds": seconds, "figures": found, "said": said[-1500:]})

    with log.open("w") as out:
        try:
            ended = limited(part.command(result), out, part.limit, told)
        except OSError as error:  # a tool that is not there
            ended = str(error)
    told(ended)


def _read(path: Path) -> Figures:
    """Figures from a file, none while it is not there or not whole."""
    with suppress(FileNotFoundError, json.JSONDecodeError):
        return json.loads(path.read_text())
    return {}


def sanitized(said: str) -> Figures:
    """What compute-sanitizer has found."""
    summary = re.findall(r"SUMMARY: (.*)", said)
    kernels = re.findall(r"KERNELS (\d+) FAILED (\d+)", said)
    ran, failed = map(int, kernels[-1]) if kernels else (0, 0)
    return {"summary": summary[-1] if summary else "", "kernels": ran, "failed": failed}


def machine() -> str:
    """The GPU and its driver."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if not shutil.which(query[0]):
        return ""
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()


def write(path: Path, figures: Figures, name: str, found: Figures) -> None:
    """Put what is known of a part into the file, which is whole at any time."""
    with WRITING:
        figures["parts"][name] = {**{k: figures[k] for k in ("date", "commit")}, **found}
        fresh = path.with_suffix(".fresh")
        fresh.write_text(json.dumps(figures, indent=1))
        fresh.replace(path)


def side_by_side(names: Iterable[str]) -> list[list[str]]:
    """The parts that run at the same time, in order: one that is timed runs alone."""
    together: list[list[str]] = []
    for name in names:
        if together and not PARTS[name].timed and not PARTS[together[-1][-1]].timed:
            together[-1].append(name)
        else:
            together.append([name])
    return together


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}, page; all if none")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results" / "gpu.md")
    parser.add_argument("--logs", type=Path, default=None)
    parser.add_argument("--models", default="", help="only these, comma separated")
    parser.add_argument("--precisions", default="fp16,f32", help="of models")
    parser.add_argument("--missing", action="store_true", help="only models not measured yet")
    parser.add_argument("--seconds", type=float, default=3600, help="of all parts together")
    return parser.parse_args()


def main() -> None:
    """Measure the parts that are asked for; write figures and page."""
    given = arguments()
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    from page import page
    from revision import commit

    end = time.monotonic() + given.seconds
    figures = json.loads(given.json.read_text()) if given.json.exists() else {"parts": {}}
    logs = given.logs or Path(tempfile.mkdtemp())
    logs.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> None:
        part = _narrowed(name, given)
        part = replace(part, limit=min(part.limit, end - time.monotonic()))
        keep = partial(write, given.json, figures, name)
        before = figures["parts"].get(name, {}).get("figures", {})
        measure(part, logs / f"{name}.log", before, keep)
        print(name, *(figures["parts"][name][k] for k in ("ended", "seconds")), "s", flush=True)

    for names in side_by_side(name for name in given.parts or PARTS if name != "page"):
        if time.monotonic() < end:
            about = {"date": str(datetime.date.today()), "commit": commit(), "machine": machine()}
            figures = {**about, "parts": figures["parts"]}
            with ThreadPoolExecutor(len(names)) as pool:
                try:
                    list(pool.map(one, names))
                except BaseException:
                    STOPPED.set()
                    raise
    given.page.write_text(page(figures))


if __name__ == "__main__":
    main()
