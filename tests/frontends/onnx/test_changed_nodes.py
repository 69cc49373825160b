"""ONNX's own models of one operator with one thing about them changed, in several versions.

Each is imported, or refused by an error of ours that says why; nothing else may be raised.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.core.errors import Error
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.fuzz.exhaustive_mutations import mutated_by, single_mutations
from tilewright.fuzz.seed_corpus import Seed, seed_modules, seeds_of

# Every so many operators in each run of the tests, and so many cases of each; `-m slow` has all.
SAMPLED, CASES = 4, 1
VERSIONS = (None, 6, 13)


def _of_version(seed: Seed, version: int | None) -> Seed:
    model = type(seed.model)()
    model.CopyFrom(seed.model)
    if version is not None:
        model.opset_import[0].version = version
    return replace(seed, model=model)


def _check(seed: Seed) -> None:
    for version in VERSIONS:
        known = _of_version(seed, version)
        for mutation in single_mutations(known):
            try:
                import_onnx(mutated_by(mutation, known.model))
            except Error:
                continue
            except Exception as error:
                raise AssertionError(f"{seed.name}, version {version}: {mutation.name}") from error


@pytest.mark.parametrize("module", seed_modules()[3::SAMPLED])
def test_some(module: str) -> None:
    for seed in seeds_of(module)[:CASES]:
        _check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("module", seed_modules())
def test_all(module: str) -> None:
    for seed in seeds_of(module):
        _check(seed)
