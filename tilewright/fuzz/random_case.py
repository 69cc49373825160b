"""Random cases: models grown from operands and test cases, some with sizes left open."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx

from tilewright.core.errors import Error
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.fuzz.case_file import Arrays, Case
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.random_values import any_dtype
from tilewright.fuzz.seed_corpus import Seed, modules_for, seeds_of
from tilewright.fuzz.seed_template import seed_step
from tilewright.fuzz.templates.table import STEPS

# Modules of test cases whose results are random numbers.
RANDOM = ("bernoulli", "dropout")
SIZES_TO_RUN = (1, 0, 2, 6, 11)
# Open sizes are not run where all inputs together would have more elements.
MAX_TO_RUN = 1 << 12

Save = Callable[[Case], object]


def random_case(seed: str, operators: frozenset[str], save: Save) -> Case:
    """The case of a seed; `save` is told of each piece before it is first tried."""
    rng, first = _start(seed, operators)
    d = PartialModel(rng, _opsets(first), save)
    for _ in range(rng.randrange(1, 3)):
        d.fresh(any_dtype(rng))
    if rng.random() < 0.7:
        d.fresh(np.dtype(np.float32), [rng.choice((1, 2)), *rng.sample((1, 2, 3, 5, 8, 16), 3)])
    want = rng.choice((1, 2, 3, 4, 6, 8))
    if first is not None:
        for _ in range(rng.randrange(2)):
            _grow(d)
        seed_step(d, first)
    for _ in range(3 * want):
        if len(d.nodes) >= want:
            break
        _grow(d)
    return _with_open_sizes(d) if rng.random() < 0.35 else d.case()


def prepare(seed: str, operators: frozenset[str]) -> None:
    """Make the test cases that `random_case` will ask for: they are kept in this process."""
    _start(seed, operators)


def _start(seed: str, operators: frozenset[str]) -> tuple[random.Random, Seed | None]:
    rng = random.Random(seed)
    return rng, _seed(rng, operators) if operators or rng.random() < 0.6 else None


def _seed(rng: random.Random, operators: frozenset[str]) -> Seed | None:
    modules = [m for m in modules_for(operators) if m not in RANDOM]
    for _ in range(20):
        seeds = [s for s in seeds_of(rng.choice(modules)) if s.plain] if modules else []
        seeds = [s for s in seeds if not operators or operators & s.operators]
        if seeds:
            return rng.choice(seeds)
    return None


def _opsets(seed: Seed | None) -> dict[str, int]:
    if seed is None:
        return {"": onnx.defs.onnx_opset_version()}
    return {o.domain: o.version for o in seed.model.opset_import}


def _grow(d: PartialModel) -> None:
    """One more step, mostly from a recent value."""
    names = list(d.values)
    recent = names[-3:] if d.rng.random() < 0.6 else names
    d.rng.choice(STEPS)(d, d.rng.choice(recent))


def _with_open_sizes(d: PartialModel) -> Case:
    """The model with one or two sizes of its inputs open, run at several; or as it is."""
    fixed = d.case()
    sizes = sorted({s for run in fixed.runs for a in run.values() for s in a.shape if s > 1})
    if not sizes:
        return fixed
    chosen = d.rng.sample(sizes, min(len(sizes), d.rng.randint(1, 2)))
    case = d.case({size: f"N{size}" for size in chosen})
    d.save(case)
    try:
        import_onnx(case.model)
    except Error:
        return fixed
    others = [_resized(case.runs[0], dict.fromkeys(chosen, size)) for size in SIZES_TO_RUN]
    small = [run for run in others if sum(a.size for a in run.values()) <= MAX_TO_RUN]
    return replace(case, runs=(*case.runs, *small))


def _resized(run: Arrays, new: dict[int, int]) -> Arrays:
    found: Arrays = {}
    for name, array in run.items():
        shape = tuple(new[size] if size in new else size for size in array.shape)
        found[name] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    return found
