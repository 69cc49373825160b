"""ONNX's own backend tests, all of them, by ONNX's own runner."""

from __future__ import annotations

from tests.conformance.onnx_cases import KINDS, backend_cases

CASES = backend_cases(__name__)
globals().update(CASES)


def test_every_kind_of_case_is_run() -> None:
    assert set(CASES) == set(KINDS)
    counted = sum(name.startswith("test_") for cases in CASES.values() for name in vars(cases))
    assert counted >= 2000
