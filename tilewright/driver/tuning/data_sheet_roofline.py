"""The roofline of a GPU by its data sheet: what no kernel can exceed, nothing is measured."""

from __future__ import annotations

from math import inf

from tilewright.runtime.roofline.roofline import Level, Roofline
from tilewright.target.gpu import GpuTarget

# The L2 cache of no GPU delivers more than so many times what its memory does.
L2_SPEEDUP = 3.0
# The rates of tensor cores, beside that of 16-bit operands, where there are instructions.
MMA_SPEED = {"f16": 1.0, "bf16": 1.0, "i8": 2.0, "u8": 2.0, "f32": 0.5}


def data_sheet_roofline(target: GpuTarget) -> Roofline:
    """The arithmetic and bandwidth roofs of a GPU."""
    known = {shape.operands for shape in target.mma_shapes}
    rates = {name: speed * target.mma_rate for name, speed in MMA_SPEED.items() if name in known}
    levels = (
        Level("L2", float(target.l2), L2_SPEEDUP * target.memory_rate),
        Level("memory", inf, float(target.memory_rate)),
    )
    return Roofline(0, {"f32": float(target.f32_rate), **rates}, levels)
