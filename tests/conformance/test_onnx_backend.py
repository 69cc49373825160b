"""ONNX's own backend tests, all of them, by ONNX's own runner, some forty in one test.

CI tries a quarter of the cases of operators, which come in groups of variants, an eighth of those
in which ONNX has written a function out, and one of its nine whole models. The others are slow.
"""

from __future__ import annotations

import re
import unittest

import pytest

from tests.conformance.onnx_cases import (
    KINDS,
    NOT_DETERMINED,
    backend_cases,
    counted,
    outcome,
    why_not_determined,
)

PARTS = 12
SLOW_PARTS = 40
# CI tries one in so many cases: of operators, and of functions that are written out.
EVERY_NODE = 4
EVERY_EXPANDED = 8
REAL = "OnnxBackendRealModelTest"
IN_CI = ("test_squeezenet_cpu",)
SLOW = (
    "test_bvlc_alexnet_cpu", "test_densenet121_cpu", "test_inception_v1_cpu",
    "test_inception_v2_cpu", "test_resnet50_cpu", "test_shufflenet_cpu", "test_vgg19_cpu",
    "test_zfnet512_cpu",
)  # fmt: skip


Case = tuple[type[unittest.TestCase], str]


def _names(cases: type[unittest.TestCase]) -> list[str]:
    return [name for name in vars(cases) if name.startswith("test_")]


def _cases() -> list[Case]:
    """Every class of ONNX's with the name of one of its tests; made when the first test asks."""
    classes = backend_cases(__name__)
    assert set(classes) == set(KINDS)
    return [(kind, name) for kind in classes.values() for name in _names(kind)]


def _small_cases() -> tuple[list[Case], list[Case]]:
    """Those that are tried in CI, and the rest, all of operators."""
    small = [(kind, name) for kind, name in _cases() if KINDS[kind.__name__] != "real"]
    nodes = [case for case in small if KINDS[case[0].__name__] == "node"]
    expanded = [case for case in nodes if "_expanded" in case[1]]
    single = [case for case in nodes if "_expanded" not in case[1]]
    tried = {*single[::EVERY_NODE], *expanded[::EVERY_EXPANDED]}
    rest = [case for case in nodes if case not in tried]
    late = set(rest)
    return [case for case in small if case not in late], rest


def _failed(cases: list[Case]) -> dict[str, str]:
    outcomes = {name: outcome(kind, name) for kind, name in cases}
    failed = {name: what for name, what in outcomes.items() if what != "pass"}
    return {name: what for name, what in failed.items() if what != why_not_determined(name)}


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass(part: int) -> None:
    assert not _failed(_small_cases()[0][part::PARTS])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_other_cases_pass(part: int) -> None:
    assert not _failed(_small_cases()[1][part::SLOW_PARTS])


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


def test_cases_are_counted_by_kind() -> None:
    node, real = "OnnxBackendNodeModelTest", "OnnxBackendRealModelTest"
    outcomes = [(node, "a", "pass"), (node, "b", "ValueError: no"), (real, "c", "pass")]
    assert counted(outcomes) == [
        {"kind": "node", "cases": 2, "pass": 1, "left": {"b": "ValueError: no"}},
        {"kind": "real", "cases": 1, "pass": 1, "left": {}},
    ]
