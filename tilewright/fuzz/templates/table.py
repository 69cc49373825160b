"""All steps by which a model grows; a step that is listed twice is taken twice as often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates import control_flow, data_dependent, dtypes, plain

Step = Callable[[PartialModel, str], list[str]]

# What a body of a loop or branch is made of: steps that have no bodies themselves.
PLAIN: Sequence[Step] = (
    *(plain.unary, plain.unary, plain.binary, plain.binary, plain.binary, plain.where, plain.clip),
    *(plain.reduction, plain.reduction, plain.extreme, plain.rows, plain.layer_norm),
    *(plain.transpose, plain.transpose, plain.reshape, plain.reshape, plain.squeeze),
    *(plain.slice_, plain.slice_, plain.concat, plain.split, plain.pad, plain.expand),
    *(plain.gather, plain.running, plain.top, plain.matmul, plain.matmul, plain.conv, plain.pool),
    *(plain.resize, plain.triangle),
    *(dtypes.cast, dtypes.cast, dtypes.quantized),
    *(data_dependent.positions, data_dependent.unique, data_dependent.boxes),
)
REGIONS: Sequence[Step] = [control_flow.step(make, PLAIN) for make in control_flow.MAKERS]
STEPS: Sequence[Step] = (*PLAIN, *REGIONS)
