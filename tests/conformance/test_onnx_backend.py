"""ONNX's own backend tests, all of them, by ONNX's own runner, some fifty in one test."""

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


def _cases() -> list[tuple[type[unittest.TestCase], str]]:
    """Every class of ONNX's with the name of one of its tests; made when the first test asks."""
    classes = backend_cases(__name__)
    assert set(classes) == set(KINDS)
    return [(kind, name) for kind in classes.values() for name in vars(kind) if name[:5] == "test_"]


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass(part: int) -> None:
    outcomes = {name: outcome(kind, name) for kind, name in _cases()[part::PARTS]}
    failed = {name: what for name, what in outcomes.items() if what != "pass"}
    assert not {name: what for name, what in failed.items() if what != why_not_determined(name)}


def test_no_case_is_missing() -> None:
    names = [name for _, name in _cases()]
    assert len(names) >= 2000
    assert not [p for p in NOT_DETERMINED if not any(re.fullmatch(p, name) for name in names)]
