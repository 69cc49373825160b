"""What a GPU can do at best, by its data sheet: products, other arithmetic, memory.

    roofline = gpu_roofline(resolve("cuda -arch=sm_90a"))
    roofline.bound(KernelWork(flops=2e12, bytes=6e6, element="f16"), footprint=0)

The L2 has no rate there: what lies in it counts as if it came from memory, so that a kernel that
only passes on what its neighbours have left there may come out above the roof.
"""

from __future__ import annotations

from tilewright.runtime.roofline.roofline import Level, Roofline
from tilewright.target.gpu import GpuTarget

# How fast products of a type are, relative to those of 16 bits; of f32 where they may be rounded.
_TO_HALF = {"f16": 1.0, "bf16": 1.0, "f32": 0.5, "i8": 2.0, "u8": 2.0}


def gpu_roofline(target: GpuTarget) -> Roofline:
    """The roofline of a GPU."""
    products = {
        shape.operands: target.mma_rate * _TO_HALF[shape.operands]
        for shape in target.mma_shapes
        if shape.operands in _TO_HALF
    }
    memory = Level("memory", float("inf"), float(target.memory_rate))
    return Roofline(0, {"f32": float(target.f32_rate), **products}, (memory,))
