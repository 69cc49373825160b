"""Fuzzing campaigns of random graphs, each in a process of its own; findings are shrunk and kept.

The graph of a number depends on the seed and the number only, not on the time or on other graphs.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tilewright.core.errors import Error
from tilewright.fuzz.case_file import Case, read_case, write_case
from tilewright.fuzz.differential_check import CheckResult, check_case
from tilewright.fuzz.oracle import interpreter
from tilewright.fuzz.random_case import prepare, random_case
from tilewright.fuzz.sandbox import (
    DEFAULT_LIMITS,
    Job,
    Outcome,
    SandboxLimits,
    preload,
    run_all,
    run_isolated,
)
from tilewright.fuzz.shrink import shrink, with_graph
from tilewright.ops.interpret import evaluate_node

Progress = Callable[[str], None]
# Ends of a graph whose results were compared with the interpreter's, or with its error.
COMPARED = ("right", "wrong", "reading", "threads", "unchecked", "error")


@dataclass(frozen=True)
class FuzzSettings:
    """What to try, for how long, and where findings go."""

    seed: int = 0
    graphs: int | None = None
    seconds: float | None = None
    operators: frozenset[str] = frozenset()
    jobs: int = 1
    out: Path | None = None
    limits: SandboxLimits = DEFAULT_LIMITS
    shrink_seconds: float = 60.0
    first: int = 0


@dataclass
class FuzzReport:
    """What came out: how many of each kind, which operators, and the findings.

    `reference` counts graphs that were compared with ONNX's reference too, and `met` their
    operators.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    reference: int = 0
    met: Counter[str] = field(default_factory=Counter)

    @property
    def compared(self) -> int:
        """The graphs all of whose results were compared with the interpreter's."""
        return sum(self.kinds[kind] for kind in COMPARED)

    @property
    def tried(self) -> int:
        """All of them."""
        return self.kinds.total() - self.kinds["like another"]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "tried": self.tried,
            "kinds": dict(self.kinds),
            "compared": self.compared,
            "compared_with_reference": self.reference,
            "operators_met_by_reference": dict(sorted(self.met.items())),
            "operators": dict(sorted(self.operators.items())),
            "findings": self.findings,
            "seconds": self.seconds,
        }


def run_campaign(settings: FuzzSettings, progress: Progress = lambda text: None) -> FuzzReport:
    """Try graphs until their number or the time is reached."""
    preload()
    report, start = FuzzReport(), time.monotonic()
    with TemporaryDirectory(prefix="tw-fuzz-") as folder:
        jobs = _jobs(settings, Path(folder), start)
        for index, outcome in run_all(jobs, settings.limits, settings.jobs):
            number, result = settings.first + index, check_result(outcome)
            report.kinds[result.kind] += 1
            if outcome.kind == "done":
                report.operators.update(outcome.value["operators"])
                if outcome.value["reference"]:
                    report.reference += 1
                    report.met.update(outcome.value["operators"])
            if result.is_finding:
                _keep(settings, report, number, _path(Path(folder), number), result)
            _remove(_path(Path(folder), number))
            progress(f"{report.kinds.total()} graphs, {len(report.findings)} findings")
    report.seconds = time.monotonic() - start
    return report


def numbers(settings: FuzzSettings, start: float) -> Iterator[int]:
    """The numbers of what is tried, until there are enough or the time is up."""
    count = itertools.count(settings.first)
    for number in itertools.islice(count, settings.graphs):
        if settings.seconds is not None and time.monotonic() - start > settings.seconds:
            return
        yield number


def _jobs(settings: FuzzSettings, folder: Path, start: float) -> Iterator[Job]:
    for number in numbers(settings, start):
        seed, path = f"{settings.seed}:{number}", _path(folder, number)
        prepare(seed, settings.operators)
        yield partial(_try, seed, settings.operators, path)


def _path(folder: Path, number: int) -> Path:
    return folder / f"graph{number}.onnx"


def _remove(path: Path) -> None:
    for file in (path, path.with_suffix(".json")):
        file.unlink(missing_ok=True)


def _try(seed: str, operators: frozenset[str], path: Path) -> dict[str, Any]:
    """In a process of its own: make a case, write it down in case of a crash, and check it."""
    case = random_case(seed, operators, partial(write_case, path))
    write_case(path, case)
    names = {node.op_type for node in case.model.graph.node}
    return {**check_case(case).as_json(), "operators": sorted(names)}


def check_result(outcome: Outcome) -> CheckResult:
    """What the outcome of a check's process says."""
    if outcome.kind == "done":
        return CheckResult(outcome.value["kind"], outcome.value["detail"])
    kind = "internal" if outcome.kind == "exception" else outcome.kind
    return CheckResult(kind, str(outcome.value))


def check_isolated(case: Case, limits: SandboxLimits) -> CheckResult:
    """Check a case in a process of its own."""
    return check_result(run_isolated(lambda: check_case(case).as_json(), limits))


def _keep(
    settings: FuzzSettings, report: FuzzReport, number: int, path: Path, result: CheckResult
) -> None:
    """Shrink a finding and write it, unless the like of it is there already."""
    if not path.is_file():  # a defect of the generator, before there was anything to try
        report.findings.append(
            {"graph": f"{settings.seed}:{number}", "operators": [], **result.as_json()}
        )
        return
    case = read_case(path)
    short = replace(settings.limits, seconds=min(settings.limits.seconds, 20.0))
    again = check_isolated(case, settings.limits)
    if again.kind == result.kind:
        wanted = signature(result)
        case = shrink(
            case,
            lambda c: signature(check_isolated(c, short)) == wanted,
            partial(values_of, limits=short),
            settings.shrink_seconds,
        )
    operators = [node.op_type for node in case.model.graph.node]
    found = {"graph": f"{settings.seed}:{number}", "kind": result.kind, "operators": operators}
    found["detail"] = check_isolated(case, short).detail or result.detail
    if any(_like(found) == _like(other) for other in report.findings):
        report.kinds["like another"] += 1
        return
    if settings.out is not None:
        name = "-".join([result.kind, *operators[:3], str(settings.seed), str(number)]).lower()
        found["file"] = str(write_case(settings.out / f"{name}.onnx", replace(case, notes=found)))
    report.findings.append(found)


def signature(result: CheckResult) -> tuple[str, str]:
    """What must stay the same when a finding is shrunk: its kind, and which error it is."""
    lines = result.detail.strip().splitlines() or [""]
    if result.kind == "internal":
        return result.kind, lines[-1].split(":")[0] + _place(lines)
    if result.kind in ("error", "crash"):
        return result.kind, lines[0].split(":")[0]
    return result.kind, ""


def _place(lines: list[str]) -> str:
    """The last line of our own code in a traceback."""
    ours = [line for line in lines if "tilewright" in line and line.lstrip().startswith("File")]
    return ours[-1].partition("tilewright")[2] if ours else ""


def _like(found: Mapping[str, Any]) -> tuple[object, ...]:
    said = signature(CheckResult(found["kind"], found["detail"]))
    return (*said, *(found["operators"] if said[0] in ("wrong", "threads") else ()))


def values_of(case: Case, limits: SandboxLimits) -> dict[str, np.ndarray]:
    """The arrays that each node of a case gives, as far as it can be interpreted."""
    with TemporaryDirectory(prefix="tw-fuzz-") as folder:
        path = Path(folder) / "values.onnx"
        outcome = run_isolated(partial(_write_values, case, path), limits)
        return read_case(path).runs[0] if outcome.kind == "done" else {}


def _write_values(case: Case, path: Path) -> None:
    names = [name for node in case.model.graph.node for name in node.output if name]
    found: dict[str, np.ndarray] = {}
    for name in names:
        part = with_graph(case, case.model.graph.node, [name])
        try:
            value = interpreter(part.model)(part.runs[0], evaluate_node)[0]
        except Error:
            continue
        if isinstance(value, np.ndarray):
            found[name] = value
    write_case(path, Case(case.model, (found,)))
