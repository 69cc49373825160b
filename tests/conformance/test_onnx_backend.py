"""ONNX's own backend tests, all of them, by ONNX's own runner, some fifty in one test.

Its whole models take most of the time, and two of the nine are tried in CI.
"""

from __future__ import annotations

import re
import unittest

import pytest

from tests.conformance.onnx_cases import (
    KINDS,
    NOT_DETERMINED,
    backend_cases,
    outcome,
    why_not_determined,
)

PARTS = 40
REAL = "OnnxBackendRealModelTest"
IN_CI = ("test_shufflenet_cpu", "test_squeezenet_cpu")
SLOW = (
    "test_bvlc_alexnet_cpu", "test_densenet121_cpu", "test_inception_v1_cpu",
    "test_inception_v2_cpu", "test_resnet50_cpu", "test_vgg19_cpu", "test_zfnet512_cpu",
)  # fmt: skip


def _names(cases: type[unittest.TestCase]) -> list[str]:
    return [name for name in vars(cases) if name.startswith("test_")]


def _cases() -> list[tuple[type[unittest.TestCase], str]]:
    """Every class of ONNX's with the name of one of its tests; made when the first test asks."""
    classes = backend_cases(__name__)
    assert set(classes) == set(KINDS)
    return [(kind, name) for kind in classes.values() for name in _names(kind)]


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass(part: int) -> None:
    small = [(kind, name) for kind, name in _cases() if KINDS[kind.__name__] != "real"]
    outcomes = {name: outcome(kind, name) for kind, name in small[part::PARTS]}
    failed = {name: what for name, what in outcomes.items() if what != "pass"}
    assert not {name: what for name, what in failed.items() if what != why_not_determined(name)}


@pytest.mark.parametrize(
    "name", [*IN_CI, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_whole_models_pass(name: str) -> None:
    assert outcome(backend_cases(__name__)[REAL], name) == "pass"


def test_no_case_is_missing() -> None:
    names = [name for _, name in _cases()]
    assert sorted(_names(backend_cases(__name__)[REAL])) == sorted((*IN_CI, *SLOW))
    assert len(names) >= 2000
    assert not [p for p in NOT_DETERMINED if not any(re.fullmatch(p, name) for name in names)]
