"""The tables of sketch rules for processors and for GPUs, in the order in which they are asked."""

from __future__ import annotations

from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target
from tilewright.tune.space.sketch.cache_write import CACHE_WRITE
from tilewright.tune.space.sketch.cross_thread_reduction import CROSS_THREAD
from tilewright.tune.space.sketch.fused_tiling import FUSED_TILING
from tilewright.tune.space.sketch.gpu_tensor_core import GPU_TENSOR_CORE
from tilewright.tune.space.sketch.gpu_tiling import GPU_TILING
from tilewright.tune.space.sketch.inline import ALWAYS, INLINE
from tilewright.tune.space.sketch.multi_level_tiling import MULTI_LEVEL_TILING
from tilewright.tune.space.sketch.rfactor import RFACTOR
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.skip import SKIP
from tilewright.tune.space.sketch.tensorize import TENSORIZE

RULES: tuple[SketchRule, ...] = (
    ALWAYS,
    TENSORIZE,
    FUSED_TILING,
    CACHE_WRITE,
    RFACTOR,
    INLINE,
    MULTI_LEVEL_TILING,
    SKIP,
)

GPU_RULES: tuple[SketchRule, ...] = (
    ALWAYS,
    GPU_TENSOR_CORE,
    GPU_TILING,
    CROSS_THREAD,
    INLINE,
    SKIP,
)


def rules_for(target: Target) -> tuple[SketchRule, ...]:
    """The rules for a kind of machine."""
    return GPU_RULES if isinstance(target, GpuTarget) else RULES
