"""What all candidates of a task have in common: how they are built, fed, checked and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TOLERANCE: Mapping[str, float] = {"f16": 1e-2, "bf16": 5e-2, "f32": 1e-3, "c64": 1e-3, "f64": 1e-6}
"""How far results may be off by element type, relative to the largest; other types: not at all."""


@dataclass(frozen=True)
class Job:
    """A task as files.

    `workload` is a folder that the build worker understands, `target` what it builds for. `inputs`
    and `expected` are `.npy` files in the order of the model's inputs and outputs; a type that
    NumPy has no name for is stored as its bytes. `threads` of 0 are as many as the model says.
    Where a model would find its operands outside the caches, `cold` has them there. Traces are
    `checked` with isl before they are built.
    """

    workload: Path
    target: str
    inputs: tuple[Path, ...]
    expected: tuple[Path, ...]
    threads: int = 0
    cold: bool = False
    tolerance: Mapping[str, float] = field(default_factory=lambda: TOLERANCE)
    checked: bool = True
