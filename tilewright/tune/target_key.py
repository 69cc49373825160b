"""Targets as records name them: all properties, so that none of another machine is mistaken."""

from __future__ import annotations

import json
from importlib.metadata import version

from tilewright.core.host.cuda_device import cuda_device
from tilewright.core.version import VERSION
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target, kind_of, read_target, write_target

# What decides which schedules are good: equal on machines that can share them.
_ALIKE = {
    "cpu": ("triple", "vector_bits", "vector_registers", "l1", "l2"),
    "gpu": ("kind", "cpu", "registers_per_sm", "shared_per_sm", "mma_shapes"),
}


def target_text(target: Target) -> str:
    """The facts of a target, the same text for the same ones.

    The costs of a processor are not among them: a schedule was measured on a machine, whatever was
    believed of it. A GPU says that it is one.
    """
    facts = write_target(target)
    if facts["kind"] == "cpu":
        del facts["kind"], facts["costs"]
    return json.dumps(facts, sort_keys=True)


def parse_target(text: str) -> Target:
    """The target that a text of records names."""
    return read_target({"kind": "cpu", **json.loads(text)})


def differences(text: str, other: str) -> list[str]:
    """The names of the properties in which two targets differ."""
    ours, theirs = json.loads(text), json.loads(other)
    return [name for name in ours if ours[name] != theirs.get(name)]


def is_similar(text: str, target: Target) -> bool:
    """Whether what was measured on one machine may be tried on another.

    Processors have the same vectors and caches, GPUs the same architecture and SMs.
    """
    try:
        known = json.loads(text)
    except ValueError:
        return False
    ours = json.loads(target_text(target))
    alike = _ALIKE[kind_of(target)]
    return isinstance(known, dict) and all(known.get(name) == ours.get(name) for name in alike)


def versions(target: Target | None = None) -> tuple[tuple[str, str], ...]:
    """What was at work in a measurement, beside the facts of its target: names and versions.

    Of a GPU it is also the product, by the name that the driver has for it.
    """
    device = cuda_device() if isinstance(target, GpuTarget) else None
    product = () if device is None else (("gpu", device.name),)
    return (*product, ("llvmlite", version("llvmlite")), ("tilewright", VERSION))
