"""The finalized form of a function, for whichever kind of machine it is."""

from __future__ import annotations

from tilewright.finalize.cpu.pipeline import finalize
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.ir.loop.nodes import Func
from tilewright.target.cpu import CpuTarget
from tilewright.target.target import Target


def finalize_for(func: Func, target: Target) -> Func:
    """Plain loops over flat buffers, ready for the emitter of a machine."""
    return finalize(func, target) if isinstance(target, CpuTarget) else finalize_gpu(func, target)
