"""The precision that a model may be computed in, as the user allows it."""

from __future__ import annotations

from tilewright.core.errors import ConfigError
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget, with_tf32
from tilewright.target.target import Target

PRECISIONS = {
    "f32": "as the model says",
    "bf16": "products and convolutions of f32 in bf16, summed in f32, where that is faster",
    "fp16": "from the first product on in f16, sums of more than a few terms in f32, where the "
    "machine's vectors compute in f16",
    "tf32": "products and convolutions of f32 round their operands to 11 bits, summed in f32, on a "
    "GPU that has instructions for it",
}
"""What `precision` may be, and what each allows."""


def check_precision(precision: str) -> str:
    """`precision`, if there is such a one."""
    if precision not in PRECISIONS:
        known = "; ".join(f"{name!r}: {what}" for name, what in PRECISIONS.items())
        raise ConfigError(
            "precision.unknown", f"no precision named {precision!r}", help=f"one of {known}"
        )
    return precision


def machine_for(machine: Target, precision: str) -> Target:
    """A machine with the instructions that a precision allows it."""
    if precision == "tf32" and isinstance(machine, GpuTarget):
        return with_tf32(machine)
    return machine


def rounds_natively(target: CpuTarget, precision: str) -> bool:
    """Whether the machine's own conversion to bf16 will do.

    That of x86 takes subnormal numbers for zero, so that it needs the user's leave.
    """
    return target.rounds_to_bf16 and (precision == "bf16" or target.architecture != "x86_64")
