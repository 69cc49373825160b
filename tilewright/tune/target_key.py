"""Targets as records name them: all properties, so that none of another machine is mistaken."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version

from tilewright.core.version import VERSION
from tilewright.target.cpu import CpuTarget

# What decides which schedules are good: equal on machines that can share them.
_ALIKE = ("triple", "vector_bits", "vector_registers", "l1", "l2")


def target_text(target: CpuTarget) -> str:
    """The facts of a target, the same text for the same ones.

    Its costs are not among them: a schedule was measured on a machine, whatever was believed of it.
    """
    facts = {name: value for name, value in asdict(target).items() if name != "costs"}
    return json.dumps(facts, sort_keys=True)


def parse_target(text: str) -> CpuTarget:
    """The target that a text of records names."""
    known = json.loads(text)
    return CpuTarget(**{**known, "features": tuple(known["features"])})


def differences(text: str, other: str) -> list[str]:
    """The names of the properties in which two targets differ."""
    ours, theirs = json.loads(text), json.loads(other)
    return [name for name in ours if ours[name] != theirs[name]]


def is_similar(text: str, target: CpuTarget) -> bool:
    """Whether what was measured on one machine may be tried on another: vectors, caches alike."""
    try:
        known = json.loads(text)
    except ValueError:
        return False
    ours = json.loads(target_text(target))
    return isinstance(known, dict) and all(known.get(name) == ours[name] for name in _ALIKE)


def versions() -> tuple[tuple[str, str], ...]:
    """What was at work in a measurement, beside the machine: names and versions."""
    return ("llvmlite", version("llvmlite")), ("tilewright", VERSION)
