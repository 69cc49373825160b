"""ONNX's own backend tests, all of them, by ONNX's own runner."""

from __future__ import annotations

import re

import pytest

from tests.conformance.onnx_cases import (
    KINDS,
    NOT_DETERMINED,
    backend_cases,
    why_not_determined,
)

CASES = backend_cases(__name__)
NAMES = [(cases, name) for cases in CASES.values() for name in vars(cases) if name[:5] == "test_"]
for cases, name in NAMES:
    why = why_not_determined(name)
    if why is not None:
        setattr(cases, name, pytest.mark.xfail(reason=why)(vars(cases)[name]))
globals().update(CASES)


def test_every_kind_of_case_is_run() -> None:
    assert set(CASES) == set(KINDS)
    assert len(NAMES) >= 2000


@pytest.mark.parametrize("pattern", NOT_DETERMINED)
def test_a_case_that_need_not_pass_exists(pattern: str) -> None:
    assert any(re.fullmatch(pattern, name) for _, name in NAMES)
