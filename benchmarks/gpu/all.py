"""All that is shown on a GPU: kernels and models beside their peers, and that they are right.

    python benchmarks/gpu/all.py [PART ...] [--json benchmarks/results/gpu.json]
    python benchmarks/gpu/all.py page            # docs/gpu.md from the figures, without a GPU

Every part is a process with a limit of time. What it has written by then is kept, and what earlier
calls have measured of other parts stays in the file: parts can be measured one at a time.
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
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Models whose peers compile with the processors to themselves.
COLD = "resnet50,bert_base"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One process: a script with its arguments, and how many seconds it may take."""

    script: str
    arguments: tuple[str, ...]
    limit: int
    tool: str = ""

    def command(self, result: Path) -> list[str]:
        """What is run; figures go to `result`."""
        words = [sys.executable, "-u", str(HERE / self.script), *self.arguments]
        if self.tool:
            checks = ["--print-limit", "5", "--error-exitcode", "9"]
            return ["compute-sanitizer", "--tool", self.tool, *checks, *words]
        return [*words, "--json", str(result)]


def _models(batch: int) -> Part:
    given = ("--batches", str(batch), "--peers", "eager,inductor,jax")
    return Part("models.py", (*given, "--cold", COLD if batch == 1 else ""), 290)


def _narrowed(part: Part, models: str) -> Part:
    """A part of models, with only those that are named, if any are."""
    if part.script != "models.py" or not models:
        return part
    return replace(part, arguments=(*models.split(","), *part.arguments))


PARTS = {
    "rows": Part("rows.py", (), 100),
    "products": Part("products.py", ("--shapes", "100"), 90),
    "attention": Part("attention.py", ("--shapes", "100"), 90),
    "shapes": Part("check.py", ("kernels", "--shapes", "100"), 170),
    "shapes16": Part("check.py", ("kernels", "--shapes", "100", "--precision", "fp16"), 170),
    "leaks": Part("leaks.py", (), 60),
    "memcheck": Part("sanitize.py", ("--shapes", "3"), 90, "memcheck"),
    "racecheck": Part("sanitize.py", ("--shapes", "3"), 90, "racecheck"),
    "models1": _models(1),
    "models32": _models(32),
}


def limited(command: list[str], out: TextIO, limit: int) -> str:
    """Run a command, and end it with all processes that it has started when its time is over."""
    process = subprocess.Popen(
        command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
    )
    try:
        status = process.wait(limit)
        return "done" if status == 0 else f"status {status}"
    except subprocess.TimeoutExpired:
        return f"stopped after {limit} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measure(part: Part, log: Path) -> Figures:
    """Run one part; its figures, seconds, and how it ended."""
    result = Path(tempfile.mkdtemp()) / "figures.json"
    start = time.monotonic()
    with log.open("w") as out:
        try:
            ended = limited(part.command(result), out, part.limit)
        except OSError as error:  # a tool that is not there
            ended = str(error)
    seconds = round(time.monotonic() - start, 1)
    said = log.read_text(errors="replace")
    found = json.loads(result.read_text()) if result.exists() else {}
    if part.tool:
        found = sanitized(said)
    return {"ended": ended, "seconds": seconds, "figures": found, "said": said[-1500:]}


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


def main() -> None:
    """Measure the parts that are asked for, one after another; write figures and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}, page; all if none")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "gpu.md")
    parser.add_argument("--logs", type=Path, default=None)
    parser.add_argument("--models", default="", help="only these, comma separated")
    given = parser.parse_args()
    figures = json.loads(given.json.read_text()) if given.json.exists() else {"parts": {}}
    logs = given.logs or Path(tempfile.mkdtemp())
    logs.mkdir(parents=True, exist_ok=True)
    for name in given.parts or [n for n, p in PARTS.items() if (HERE / p.script).exists()]:
        if name != "page":
            found = measure(_narrowed(PARTS[name], given.models), logs / f"{name}.log")
            figures["parts"][name] = found
            figures |= {"machine": machine(), "date": str(datetime.date.today())}
            given.json.write_text(json.dumps(figures, indent=1))
            print(name, found["ended"], found["seconds"], "s", flush=True)
    sys.path.insert(0, str(HERE))
    from page import page

    given.page.write_text(page(figures))


if __name__ == "__main__":
    main()
