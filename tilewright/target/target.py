"""`Target`: a CPU or a GPU, and what holds of both.

`CpuTarget` and `GpuTarget` have no facts in common but what LLVM is asked for. Code that compiles
for one kind takes that kind; code that only passes a target on takes a `Target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from tilewright.target.calibration.cpu import read_costs
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget, MmaShape

Target: TypeAlias = CpuTarget | GpuTarget
_KINDS: dict[str, type[CpuTarget] | type[GpuTarget]] = {"cpu": CpuTarget, "gpu": GpuTarget}


def kind_of(target: Target) -> str:
    """`cpu` or `gpu`: the key of tables with an entry for each kind of target."""
    return next(kind for kind, cls in _KINDS.items() if isinstance(target, cls))


def write_target(target: Target) -> dict[str, Any]:
    """A target as data that JSON can hold."""
    return {"kind": kind_of(target), **asdict(target)}


def read_target(fields: Mapping[str, Any]) -> Target:
    """The target that `write_target` has written."""
    values = {key: value for key, value in fields.items() if key != "kind"}
    if "mma_shapes" in values:
        values["mma_shapes"] = tuple(MmaShape(**s) for s in values["mma_shapes"])
        values["instructions"] = tuple(values["instructions"])
    if "costs" in values:
        values["costs"] = read_costs(values["costs"])
    return _KINDS[fields["kind"]](**{**values, "features": tuple(values["features"])})
