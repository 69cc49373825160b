"""What tuning loses when processes crash, hang, are killed or run out of memory or disk.

    python benchmarks/kernels.py --group tuned --missing      # write the operators first
    python benchmarks/kills.py [--trials 64] [--times 8] [--json kills.json]

Each harm is done from outside, by signals and limits, at random moments of a search that begins
with no records. A tuner that ends by it is started again on the same file, until the search is
through. *Lost* are records that were in the file before a harm and are not there after the search,
*twice* are candidates that were measured again although a record of them was there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tilewright.core.errors import TuneError
from tilewright.tune.records import Record, Records

MODEL = Path(__file__).parent / "results" / "cache" / "tuned" / "gemm_512" / "model.onnx"
RUNNER, BUILDER = "tilewright.tune.measure.run_worker", "tilewright.driver.tuning.build_worker"
# Seconds between two harms, at least and at most: to workers, and to the tuner, which has to start.
BETWEEN, BETWEEN_STARTS = (1.0, 3.0), (4.0, 14.0)
# Starts of a tuner without a single new record after which it is given up.
PATIENCE = 5


@dataclass(frozen=True)
class Harm:
    """What is done, to the tuner or to a worker, and at most how often: hanging takes its time."""

    name: str
    worker: str
    does: Callable[[int], None]
    most: int = 1000


@dataclass
class Outcome:
    """What came of a search: how often harm was done, and what the records say at its end."""

    harm: str
    done: int = 0
    starts: int = 0
    measured: int = 0
    failed: int = 0
    lost: int = 0
    twice: int = 0
    seconds: float = 0.0
    ended: str = ""


def no_more_memory(process: int) -> None:
    """Leave a process with the memory that it has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    size = pages * resource.getpagesize()
    resource.prlimit(process, resource.RLIMIT_AS, (size, size))


def no_more_disk(process: int) -> None:
    """Let a process write no file any further than a page."""
    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.getpagesize(), most))


HARMS = (
    Harm("worker crashes", RUNNER, lambda pid: os.kill(pid, signal.SIGSEGV)),
    Harm("builder killed", BUILDER, lambda pid: os.kill(pid, signal.SIGKILL)),
    Harm("worker hangs", RUNNER, lambda pid: os.kill(pid, signal.SIGSTOP), most=2),
    Harm("worker out of memory", RUNNER, no_more_memory),
    Harm("tuner killed", "", lambda pid: os.kill(pid, signal.SIGKILL)),
    Harm("tuner's disk full", "", no_more_disk),
)


def workers(tuner: int, kind: str) -> list[int]:
    """The tuner's processes of a kind."""
    children = Path(f"/proc/{tuner}/task/{tuner}/children").read_text().split()
    return [int(p) for p in children if kind in Path(f"/proc/{p}/cmdline").read_text()]


def harmed(tuner: subprocess.Popen[str], harm: Harm, rng: Random) -> bool:
    """Do harm, if there is somebody to do it to; one that has just ended is no one."""
    try:
        found = workers(tuner.pid, harm.worker) if harm.worker else [tuner.pid]
        if found:
            harm.does(rng.choice(found))
    except (ProcessLookupError, FileNotFoundError):
        return False
    return bool(found)


def records_in(path: Path) -> dict[str, Record]:
    """The measurements in a file, by their identity; none where there is no file yet."""
    try:
        with Records(path, read_only=True) as records:
            return {record.id: record for record in records if not record.baseline}
    except TuneError:
        return {}


def searched(harm: Harm, given: argparse.Namespace, path: Path) -> Outcome:
    """Search once, doing harm."""
    outcome, known = Outcome(harm.name), set[str]()
    rng, begin, idle = Random(given.seed), time.monotonic(), 0
    command = [sys.executable, "-m", "tilewright", "tune", given.model, "--db", path, "--json"]
    command += ["--trials", given.trials, "--seed", given.seed]
    times = min(given.times, harm.most)
    while not outcome.ended:
        outcome.starts += 1
        before = len(known)
        tuner = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while outcome.done < times and tuner.poll() is None:
            time.sleep(rng.uniform(*(BETWEEN if harm.worker else BETWEEN_STARTS)))
            known |= records_in(path).keys()
            if tuner.poll() is None:
                outcome.done += harmed(tuner, harm, rng)
        _, said = tuner.communicate()
        known |= records_in(path).keys()
        idle = 0 if len(known) > before else idle + 1
        if tuner.returncode == 0:
            outcome.ended = "done"
        elif idle == PATIENCE:
            outcome.ended = said.strip()[-300:]
    found = records_in(path)
    alike = Counter((r.workload, r.trace, r.conditions) for r in found.values())
    outcome.measured, outcome.failed = len(found), sum(bool(r.failure) for r in found.values())
    outcome.lost, outcome.twice = len(known - found.keys()), len(found) - len(alike)
    outcome.seconds = round(time.monotonic() - begin, 1)
    return outcome


def main() -> None:
    """Search with each kind of harm, print a line each, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(h.name for h in HARMS)}")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--times", type=int, default=8, help="harms of a search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for number, harm in enumerate(HARMS):
            if given.names and harm.name not in given.names:
                continue
            outcomes.append(searched(harm, given, Path(folder) / f"{number}.db"))
            print(*(f"{name} {value}" for name, value in asdict(outcomes[-1]).items()), flush=True)
    if given.json:
        given.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1) + "\n")


if __name__ == "__main__":
    main()
