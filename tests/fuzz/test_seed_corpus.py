from __future__ import annotations

import importlib
import sys

import numpy as np

from tilewright.fuzz.seed_corpus import modules_for, seed_modules, seeds_of


def test_every_operator_has_a_module() -> None:
    assert len(seed_modules()) > 150


def test_the_cases_of_a_module_have_operands() -> None:
    seeds = seeds_of("gather")
    assert {op for s in seeds for op in s.operators} == {"Gather"}
    assert all(s.plain and all(isinstance(x, np.ndarray) for x in s.inputs.values()) for s in seeds)


def test_cases_are_made_without_changing_the_state_of_random_numbers() -> None:
    np.random.seed(3)
    first = np.random.rand()
    np.random.seed(3)
    seeds_of("abs")
    assert np.random.rand() == first


def test_whoever_loads_all_cases_finds_those_as_well() -> None:
    package = importlib.import_module("onnx.backend.test.case.node")
    seeds_of("acos")
    assert "onnx.backend.test.case.node.acos" not in sys.modules or package._NodeTestCases


def test_modules_are_found_by_operators() -> None:
    assert "gathernd" in modules_for(frozenset({"GatherND"}))
    assert modules_for(frozenset({"Nope"})) == ()
