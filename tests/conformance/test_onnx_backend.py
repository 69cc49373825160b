"""ONNX's own backend tests, all of them, by ONNX's own runner, some forty in one test.

CI tries each operator, one in twelve of its variants, one in sixteen of the cases in which ONNX
has written a function out, half of those that PyTorch has exported, and one of nine whole models.
The others are slow.
"""

from __future__ import annotations

import re
import unittest
from collections import defaultdict

import pytest

from tests.conformance.onnx_cases import (
    KINDS,
    NOT_DETERMINED,
    backend_cases,
    counted,
    loaded_cases,
    outcome,
    why_not_determined,
)

PARTS = 10
SLOW_PARTS = 40
# CI tries one in so many cases: of an operator, of functions that are written out, of PyTorch's.
EVERY_VARIANT = 12
EVERY_EXPANDED = 16
EVERY_EXPORTED = 2
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


def _variants() -> list[list[Case]]:
    """The cases of each operator, without those in which it is written out by others."""
    operators = {
        f"{case.name}_cpu": (case.model.graph.node[0].domain, case.model.graph.node[0].op_type)
        for case in loaded_cases(kind="node")
    }
    found = defaultdict(list)
    for kind, name in _of_kind("node"):
        if "_expanded" not in name:
            found[operators[name]].append((kind, name))
    return list(found.values())


def _of_kind(*wanted: str) -> list[Case]:
    return [case for case in _cases() if KINDS[case[0].__name__] in wanted]


def _small_cases() -> tuple[list[Case], list[Case]]:
    """Those that are tried in CI, and the rest."""
    expanded = [case for case in _of_kind("node") if "_expanded" in case[1]]
    exported = _of_kind("pytorch-converted", "pytorch-operator")
    tried = {
        *(case for variants in _variants() for case in variants[::EVERY_VARIANT]),
        *expanded[::EVERY_EXPANDED],
        *exported[::EVERY_EXPORTED],
        *_of_kind("simple"),
    }
    small = [case for case in _cases() if KINDS[case[0].__name__] != "real"]
    return [case for case in small if case in tried], [case for case in small if case not in tried]


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


def test_every_operator_is_tried_in_ci() -> None:
    tried = set(_small_cases()[0])
    assert len(_variants()) >= 190
    assert not [variants for variants in _variants() if tried.isdisjoint(variants)]


def test_cases_are_counted_by_kind() -> None:
    node, real = "OnnxBackendNodeModelTest", "OnnxBackendRealModelTest"
    outcomes = [(node, "a", "pass"), (node, "b", "ValueError: no"), (real, "c", "pass")]
    assert counted(outcomes) == [
        {"kind": "node", "cases": 2, "pass": 1, "left": {"b": "ValueError: no"}},
        {"kind": "real", "cases": 1, "pass": 1, "left": {}},
    ]
