"""The table of sketch rules, in the order in which they are asked."""

from __future__ import annotations

from tilewright.tune.space.sketch.cache_write import CACHE_WRITE
from tilewright.tune.space.sketch.cross_thread_reduction import CROSS_THREAD
from tilewright.tune.space.sketch.fused_tiling import FUSED_TILING
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
    CROSS_THREAD,
    RFACTOR,
    INLINE,
    MULTI_LEVEL_TILING,
    SKIP,
)
