"""Many damaged models, each compiled in a process of its own.

A model is one of ONNX's test cases, damaged as its number and the seed say, or by the single damage
of that number. A finding is written as the files that were compiled.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from tilewright.fuzz.campaign import Progress, Report, Settings, numbers, signature, verdict_of
from tilewright.fuzz.corrupt_files import Damaged, damaged, write_damaged
from tilewright.fuzz.differential_check import Verdict
from tilewright.fuzz.exhaustive_mutations import Damage, all_damages, damaged_by
from tilewright.fuzz.robustness_check import check_hostile
from tilewright.fuzz.sandbox import preload, run_all
from tilewright.fuzz.seed_corpus import Seed, modules_for, seeds_of

Made = tuple[Damaged, dict[str, Any]]  # a damaged model, and inputs for the valid one


def run_mutations(settings: Settings, progress: Progress = lambda text: None) -> Report:
    """Try models with random damages until their number or the time is reached."""
    return _run(settings, _random_models(settings), progress)


def run_each_damage(settings: Settings, progress: Progress = lambda text: None) -> Report:
    """Try all single damages, from the first number on, until they or the time are at an end."""
    return _run(settings, _single_damages(settings), progress)


def _run(settings: Settings, makers: Iterator[Callable[[], Made]], progress: Progress) -> Report:
    preload()
    report, start = Report(), time.monotonic()
    with TemporaryDirectory(prefix="tw-fuzz-") as name:
        root = Path(name)
        jobs = (
            partial(_try, make, root / str(number))
            for number, make in zip(numbers(settings, start), makers, strict=False)
        )
        for index, outcome in run_all(jobs, settings.limits, settings.jobs):
            number, verdict = settings.first + index, verdict_of(outcome)
            report.kinds[verdict.kind] += 1
            folder = root / str(number)
            if verdict.is_finding:
                _keep(settings, report, folder, number, verdict)
            rmtree(folder, ignore_errors=True)
            progress(f"{report.kinds.total()} models, {len(report.findings)} findings")
    report.seconds = time.monotonic() - start
    return report


def _random_models(settings: Settings) -> Iterator[Callable[[], Made]]:
    for number in itertools.count(settings.first):
        seed = f"{settings.seed}:{number}"
        _valid(random.Random(seed), settings.operators)  # kept in this process, not in the next
        yield partial(_random_model, seed, settings.operators)


def _random_model(seed: str, operators: frozenset[str]) -> Made:
    rng = random.Random(seed)
    model, inputs = _valid(rng, operators)
    return damaged(rng, model), inputs


def _single_damages(settings: Settings) -> Iterator[Callable[[], Made]]:
    for seed, damage in itertools.islice(all_damages(settings.operators), settings.first, None):
        yield partial(_single_damage, seed, damage)


def _single_damage(seed: Seed, damage: Damage) -> Made:
    data = damaged_by(damage, seed.model).SerializeToString()
    return Damaged(data, done=(seed.name, damage.name)), seed.inputs


def _try(make: Callable[[], Made], folder: Path) -> dict[str, str]:
    """In a process of its own: damage a model, write it down, compile it."""
    made, inputs = make()
    path = write_damaged(folder, made)
    (folder / "done.json").write_text(json.dumps(made.done))
    return check_hostile(path, inputs).as_json()


def _valid(rng: random.Random, operators: frozenset[str]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    modules = modules_for(operators)
    while not (seeds := seeds_of(rng.choice(modules))):
        pass
    chosen = rng.choice(seeds)
    return chosen.model, chosen.inputs


def _keep(settings: Settings, report: Report, folder: Path, number: int, verdict: Verdict) -> None:
    """Write a finding down, unless the like of it is there already."""
    if verdict.kind == "internal" and any(
        signature(verdict) == signature(Verdict(other["kind"], other["detail"]))
        for other in report.findings
    ):
        report.kinds["like another"] += 1
        return
    kind, done = verdict.kind, folder / "done.json"
    found = {
        "graph": f"{settings.seed}:{number}",
        "kind": kind,
        "operators": json.loads(done.read_text()) if done.is_file() else [],
        "detail": verdict.detail,
    }
    if settings.out is not None and done.is_file():
        place = settings.out / f"{kind}-{settings.seed}-{number}"
        copytree(folder, place, symlinks=True, dirs_exist_ok=True)
        found["file"] = str(place)
    report.findings.append(found)
