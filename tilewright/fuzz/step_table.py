"""All steps by which a draft grows; what stands here twice is taken twice as often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.fuzz import steps, steps_late, steps_regions, steps_types
from tilewright.fuzz.draft import Draft

Step = Callable[[Draft, str], list[str]]

# What a body of a loop or branch is made of: steps that have no bodies themselves.
PLAIN: Sequence[Step] = (
    *(steps.unary, steps.unary, steps.binary, steps.binary, steps.binary, steps.where, steps.clip),
    *(steps.reduction, steps.reduction, steps.extreme, steps.rows, steps.layer_norm),
    *(steps.transpose, steps.transpose, steps.reshape, steps.reshape, steps.squeeze),
    *(steps.slice_, steps.slice_, steps.concat, steps.split, steps.pad, steps.expand),
    *(steps.gather, steps.running, steps.top, steps.matmul, steps.matmul, steps.conv, steps.pool),
    *(steps.resize, steps.triangle),
    *(steps_types.cast, steps_types.cast, steps_types.quantized),
    *(steps_late.positions, steps_late.unique, steps_late.boxes),
)
REGIONS: Sequence[Step] = [steps_regions.step(make, PLAIN) for make in steps_regions.MAKERS]
STEPS: Sequence[Step] = (*PLAIN, *REGIONS)
