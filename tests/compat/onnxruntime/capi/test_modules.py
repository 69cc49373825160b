"""The inner modules that applications import from."""

from __future__ import annotations

import importlib

import tilewright.compat.onnxruntime as ours
from tests.for_each import for_each

MODULES = ("onnxruntime_pybind11_state", "_pybind_state", "onnxruntime_inference_collection")


@for_each("name", MODULES)
def test_names_are_theirs(name: str) -> None:
    here = importlib.import_module(f"tilewright.compat.onnxruntime.capi.{name}")
    there = importlib.import_module(f"onnxruntime.capi.{name}")
    assert not [n for n in here.__all__ if not hasattr(there, n)]


def test_names_mean_the_same_everywhere() -> None:
    state = importlib.import_module("tilewright.compat.onnxruntime.capi.onnxruntime_pybind11_state")
    other = importlib.import_module("tilewright.compat.onnxruntime.capi._pybind_state")
    assert state.Fail is other.Fail
    assert state.SessionOptions is ours.SessionOptions


def test_the_packages_names_are_theirs() -> None:
    import onnxruntime

    assert not [n for n in ours.__all__ if not hasattr(onnxruntime, n)]
