"""Which inputs of a tensor program its output may overwrite."""

from __future__ import annotations

from tilewright.arith.walk import loads
from tilewright.ir.tensor.nodes import Program


def inplace_inputs(program: Program) -> tuple[int, ...]:
    """Inputs whose memory the (single) output may take: read only at the element being written."""
    if len(program.outputs) != 1:
        return ()
    identity = {program.outputs[0]}
    blocked: set[str] = set()
    for stage in reversed(program.stages):
        for load in loads(stage.body):
            plain = (
                stage.name in identity - blocked
                and not stage.is_reduction
                and load.indices == stage.indices
                and load.mask is None
            )
            (identity if plain else blocked).add(load.buffer)
    output = next(s for s in program.stages if s.name == program.outputs[0])
    return tuple(
        i
        for i, t in enumerate(program.inputs)
        if t.name in identity - blocked and t.shape == output.shape and t.dtype == output.dtype
    )
