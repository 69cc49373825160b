"""Many damaged models, each compiled in a process of its own.

A model is one of ONNX's test cases, damaged as its number and the seed say. A finding is written as
the files that were compiled.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from tilewright.fuzz.campaign import Progress, Report, Settings, numbers, verdict_of
from tilewright.fuzz.damage_files import damaged, write_damaged
from tilewright.fuzz.hostile import check_hostile
from tilewright.fuzz.isolate import Job, preload, run_all
from tilewright.fuzz.seeds import modules_for, seeds_of


def run_mutations(settings: Settings, progress: Progress = lambda text: None) -> Report:
    """Try damaged models until their number or the time is reached."""
    preload()
    report, start = Report(), time.monotonic()
    with TemporaryDirectory(prefix="tw-fuzz-") as name:
        root = Path(name)
        for number, outcome in run_all(
            _jobs(settings, root, start), settings.limits, settings.jobs
        ):
            verdict = verdict_of(outcome)
            report.kinds[verdict.kind] += 1
            folder = root / str(number)
            if verdict.is_finding:
                _keep(settings, report, folder, number, verdict.kind, verdict.detail)
            rmtree(folder, ignore_errors=True)
            progress(f"{report.kinds.total()} models, {len(report.findings)} findings")
    report.seconds = time.monotonic() - start
    return report


def _jobs(settings: Settings, root: Path, start: float) -> Iterator[Job]:
    for number in numbers(settings, start):
        seed = f"{settings.seed}:{number}"
        _valid(random.Random(seed), settings.operators)  # kept in this process, not in the next
        yield partial(_try, seed, settings.operators, root / str(number))


def _try(seed: str, operators: frozenset[str], folder: Path) -> dict[str, str]:
    """In a process of its own: damage a model, write it down, compile it."""
    rng = random.Random(seed)
    model, inputs = _valid(rng, operators)
    made = damaged(rng, model)
    path = write_damaged(folder, made)
    (folder / "done.json").write_text(json.dumps(made.done))
    return check_hostile(path, inputs).as_json()


def _valid(rng: random.Random, operators: frozenset[str]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    modules = modules_for(operators)
    while not (seeds := seeds_of(rng.choice(modules))):
        pass
    chosen = rng.choice(seeds)
    return chosen.model, chosen.inputs


def _keep(
    settings: Settings, report: Report, folder: Path, number: int, kind: str, detail: str
) -> None:
    done = folder / "done.json"
    found = {
        "graph": f"{settings.seed}:{number}",
        "kind": kind,
        "operators": json.loads(done.read_text()) if done.is_file() else [],
        "detail": detail,
    }
    if settings.out is not None and done.is_file():
        place = settings.out / f"{kind}-{settings.seed}-{number}"
        copytree(folder, place, symlinks=True, dirs_exist_ok=True)
        found["file"] = str(place)
    report.findings.append(found)
