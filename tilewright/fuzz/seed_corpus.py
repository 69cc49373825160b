"""ONNX's own test cases of single operators: valid operands and attributes for every operator.

They are made by modules of `onnx.backend.test`, one for each operator, when these are imported.
All of them take a while, so a module is imported when its cases are first asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

_PACKAGE = "onnx.backend.test.case.node"


@dataclass(frozen=True)
class Seed:
    """A valid model and operands for it, by name."""

    name: str
    model: ModelProto
    inputs: dict[str, Any]

    @property
    def plain(self) -> bool:
        """Whether all operands are arrays of numbers."""
        arrays = all(isinstance(x, np.ndarray) for x in self.inputs.values())
        return arrays and not any(x.dtype.kind in "OUS" for x in self.inputs.values())

    @property
    def operators(self) -> frozenset[str]:
        """The types of its nodes."""
        return frozenset(node.op_type for node in self.model.graph.node)


@cache
def seed_modules() -> tuple[str, ...]:
    """The names of the modules that have cases."""
    package = importlib.import_module(_PACKAGE)
    return tuple(sorted(info.name for info in pkgutil.iter_modules(package.__path__)))


@cache
def seeds_of(module: str) -> tuple[Seed, ...]:
    """The cases of one module that are nodes as such, not what ONNX makes them of."""
    found = _cases(module)
    return tuple(
        Seed(case.name, case.model, _inputs(case))
        for case in found
        if case.model is not None and not case.name.endswith("_expanded")
    )


def _cases(module: str) -> list[Any]:
    """What importing the module makes; whoever else loads ONNX's cases still finds all of them."""
    package: Any = importlib.import_module(_PACKAGE)
    name = f"{_PACKAGE}.{module}"
    imported, state = sys.modules.pop(name, None), np.random.get_state()
    kept = package._NodeTestCases, package._existing_names
    package._NodeTestCases, package._existing_names = [], {}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # making the cases overflows here and there
            importlib.import_module(name)
        return list(package._NodeTestCases)
    finally:
        package._NodeTestCases, package._existing_names = kept
        np.random.set_state(state)
        sys.modules.pop(name, None)
        if imported is not None:
            sys.modules[name] = imported


def _inputs(case: Any) -> dict[str, Any]:
    initialized = {t.name for t in case.model.graph.initializer}
    names = [v.name for v in case.model.graph.input if v.name not in initialized]
    return dict(zip(names, map(_value, case.data_sets[0][0]), strict=False))


def _value(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def modules_for(operators: frozenset[str]) -> tuple[str, ...]:
    """The modules that have cases of these operators; all where none are asked for."""
    if not operators:
        return seed_modules()
    wanted = {_bare(name) for name in operators}
    named = [m for m in seed_modules() if any(_bare(m).startswith(w) for w in wanted)]
    return tuple(m for m in named if any(operators & s.operators for s in seeds_of(m)))


def _bare(name: str) -> str:
    return name.replace("_", "").lower()
