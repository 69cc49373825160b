"""Tilewright: a deep-learning compiler in Python.

    import tilewright as tw
    model = tw.compile("model.onnx")
    y = model(x)

Names are resolved on first use, so that loading a saved model imports no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "compile": "tilewright.driver.compile",
    "load": "tilewright.driver.load",
    "Error": "tilewright.core.errors",
    "FrontendError": "tilewright.core.errors",
    "TypeCheckError": "tilewright.core.errors",
    "VerifyError": "tilewright.core.errors",
    "PassError": "tilewright.core.errors",
    "ScheduleError": "tilewright.core.errors",
    "LoweringError": "tilewright.core.errors",
    "CodegenError": "tilewright.core.errors",
    "ExecutionError": "tilewright.core.errors",
    "TuneError": "tilewright.core.errors",
    "ConfigError": "tilewright.core.errors",
    "UnsupportedError": "tilewright.core.errors",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
