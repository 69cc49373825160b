"""Any machine that code is made for: by name, and what is told of all of them alike.

CPUs (`cpu.py`) and GPUs (`gpu.py`) have no facts in common but what LLVM is asked for. Whatever
builds code for one kind takes that kind; whatever only passes a machine on takes a `Machine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tilewright.target import cpu, gpu
from tilewright.target.cpu import Target
from tilewright.target.gpu import GpuTarget, MatrixShape

Machine = Target | GpuTarget
_KINDS: dict[str, type[Target] | type[GpuTarget]] = {"cpu": Target, "gpu": GpuTarget}


def machine_names() -> tuple[str, ...]:
    """The names that `resolve_machine` knows."""
    return (*cpu.target_names(), *gpu.target_names())


def resolve_machine(name: str) -> Machine:
    """The machine called `name`."""
    if name.startswith(gpu.PREFIX):
        return gpu.resolve(name)
    if name not in cpu.target_names():
        raise cpu.unknown_target(name, machine_names())
    return cpu.resolve(name)


def kind_of(machine: Machine) -> str:
    """`cpu` or `gpu`: the key of what there is one of for each kind of machine."""
    return next(kind for kind, cls in _KINDS.items() if isinstance(machine, cls))


def write_machine(machine: Machine) -> dict[str, Any]:
    """A machine as data that JSON can hold."""
    return {"kind": kind_of(machine), **asdict(machine)}


def read_machine(fields: Mapping[str, Any]) -> Machine:
    """The machine that `write_machine` has written."""
    values = {key: value for key, value in fields.items() if key != "kind"}
    if "matrix_shapes" in values:
        values["matrix_shapes"] = tuple(MatrixShape(**s) for s in values["matrix_shapes"])
    return _KINDS[fields["kind"]](**{**values, "features": tuple(values["features"])})
