"""Fuzzing campaigns of mutated models, each compiled in a process of its own.

A model is one of ONNX's test cases, with random mutations by its number and the seed, or with the
single mutation of that number. A finding is written as the files that were compiled.
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

from tilewright.fuzz.campaign import (
    FuzzReport,
    FuzzSettings,
    Progress,
    check_result,
    numbers,
    signature,
)
from tilewright.fuzz.corrupt_files import MutatedFiles, random_mutations, write_mutated
from tilewright.fuzz.differential_check import CheckResult
from tilewright.fuzz.exhaustive_mutations import Mutation, all_mutations, mutated_by
from tilewright.fuzz.robustness_check import check_robustness
from tilewright.fuzz.sandbox import preload, run_all
from tilewright.fuzz.seed_corpus import Seed, modules_for, seeds_of

Made = tuple[MutatedFiles, dict[str, Any]]  # a mutated model, and inputs for the valid one


def run_mutations(settings: FuzzSettings, progress: Progress = lambda text: None) -> FuzzReport:
    """Try models with random mutations until their number or the time is reached."""
    return _run(settings, _random_models(settings), progress)


def run_exhaustive(settings: FuzzSettings, progress: Progress = lambda text: None) -> FuzzReport:
    """Try all single mutations, from the first number on, until they or the time are at an end."""
    return _run(settings, _single_mutations(settings), progress)


def _run(
    settings: FuzzSettings, makers: Iterator[Callable[[], Made]], progress: Progress
) -> FuzzReport:
    preload()
    report, start = FuzzReport(), time.monotonic()
    with TemporaryDirectory(prefix="tw-fuzz-") as name:
        root = Path(name)
        jobs = (
            partial(_try, make, root / str(number))
            for number, make in zip(numbers(settings, start), makers, strict=False)
        )
        for index, outcome in run_all(jobs, settings.limits, settings.jobs):
            number, result = settings.first + index, check_result(outcome)
            report.kinds[result.kind] += 1
            folder = root / str(number)
            if result.is_finding:
                _keep(settings, report, folder, number, result)
            rmtree(folder, ignore_errors=True)
            progress(f"{report.kinds.total()} models, {len(report.findings)} findings")
    report.seconds = time.monotonic() - start
    return report


def _random_models(settings: FuzzSettings) -> Iterator[Callable[[], Made]]:
    for number in itertools.count(settings.first):
        seed = f"{settings.seed}:{number}"
        _valid(random.Random(seed), settings.operators)  # kept in this process, not in the next
        yield partial(_random_model, seed, settings.operators)


def _random_model(seed: str, operators: frozenset[str]) -> Made:
    rng = random.Random(seed)
    model, inputs = _valid(rng, operators)
    return random_mutations(rng, model), inputs


def _single_mutations(settings: FuzzSettings) -> Iterator[Callable[[], Made]]:
    for seed, mutation in itertools.islice(all_mutations(settings.operators), settings.first, None):
        yield partial(_single_mutation, seed, mutation)


def _single_mutation(seed: Seed, mutation: Mutation) -> Made:
    data = mutated_by(mutation, seed.model).SerializeToString()
    return MutatedFiles(data, done=(seed.name, mutation.name)), seed.inputs


def _try(make: Callable[[], Made], folder: Path) -> dict[str, str]:
    """In a process of its own: mutate a model, write it down, compile it."""
    made, inputs = make()
    path = write_mutated(folder, made)
    (folder / "done.json").write_text(json.dumps(made.done))
    return check_robustness(path, inputs).as_json()


def _valid(rng: random.Random, operators: frozenset[str]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    modules = modules_for(operators)
    while not (seeds := seeds_of(rng.choice(modules))):
        pass
    chosen = rng.choice(seeds)
    return chosen.model, chosen.inputs


def _keep(
    settings: FuzzSettings, report: FuzzReport, folder: Path, number: int, result: CheckResult
) -> None:
    """Write a finding down, unless the like of it is there already."""
    if result.kind == "internal" and any(
        signature(result) == signature(CheckResult(other["kind"], other["detail"]))
        for other in report.findings
    ):
        report.kinds["like another"] += 1
        return
    kind, done = result.kind, folder / "done.json"
    found = {
        "graph": f"{settings.seed}:{number}",
        "kind": kind,
        "operators": json.loads(done.read_text()) if done.is_file() else [],
        "detail": result.detail,
    }
    if settings.out is not None and done.is_file():
        place = settings.out / f"{kind}-{settings.seed}-{number}"
        copytree(folder, place, symlinks=True, dirs_exist_ok=True)
        found["file"] = str(place)
    report.findings.append(found)
