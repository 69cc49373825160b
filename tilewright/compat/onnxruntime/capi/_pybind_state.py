"""Another name of `onnxruntime_pybind11_state`, which applications import from as well."""

from __future__ import annotations

from tilewright.compat.onnxruntime.capi import onnxruntime_pybind11_state
from tilewright.compat.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403

__all__ = onnxruntime_pybind11_state.__all__
