"""Tilewright: a deep-learning compiler in Python.

    import tilewright as tw
    model = tw.compile("model.onnx")
    y = model(x)

Names are resolved on first use, so that loading a saved model imports no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright.core.version import VERSION

if TYPE_CHECKING:
    from tilewright.core.errors import (
        CodegenError,
        ConfigError,
        Error,
        ExecutionError,
        FrontendError,
        LoweringError,
        PassError,
        ScheduleError,
        TuneError,
        TypeCheckError,
        UnsupportedError,
        VerifyError,
    )
    from tilewright.driver.compile import compile
    from tilewright.driver.grad import grad, value_and_grad
    from tilewright.driver.load import load
    from tilewright.training import optim
    from tilewright.training.train import train

__version__ = VERSION

__all__ = [
    "CodegenError",
    "ConfigError",
    "Error",
    "ExecutionError",
    "FrontendError",
    "LoweringError",
    "PassError",
    "ScheduleError",
    "TuneError",
    "TypeCheckError",
    "UnsupportedError",
    "VerifyError",
    "compile",
    "grad",
    "load",
    "optim",
    "train",
    "value_and_grad",
]
_HOMES = {
    "compile": "tilewright.driver.compile",
    "grad": "tilewright.driver.grad",
    "load": "tilewright.driver.load",
    "train": "tilewright.training.train",
    "value_and_grad": "tilewright.driver.grad",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    if name not in __all__:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    if name == "optim":
        return import_module("tilewright.training.optim")
    return getattr(import_module(_HOMES.get(name, "tilewright.core.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
