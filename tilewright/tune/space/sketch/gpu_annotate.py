"""The layout of a sketch for a GPU: each block by its rule, the rest a thread for each element.

Blocks come in order, so that a tile takes over what reads its result before that is laid out. By
then producers are inlined: a contraction that is none any more is laid out like the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule.analysis.blocks import reductions
from tilewright.schedule.builtin.gpu.injective import schedule_injective
from tilewright.schedule.builtin.gpu.thread_per_element import schedule_points
from tilewright.target.gpu import GpuTarget
from tilewright.tune.space.sketch.cross_thread_reduction import (
    CROSS_THREAD,
    shares_sums,
    sum_across_threads,
)
from tilewright.tune.space.sketch.gpu_tensor_core import (
    GPU_TENSOR_CORE,
    is_for_tensor_cores,
    tile_for_tensor_cores,
)
from tilewright.tune.space.sketch.gpu_tiling import GPU_TILING, is_tiled_on_gpu, tile_on_gpu
from tilewright.tune.space.sketch.state import Sketch

_Applies = Callable[[Sketch, str], bool]
_Layout = Callable[[Sketch, str], None]
# By the name of a rule: whether it applies, and what it does.
_LAYOUTS: dict[str, tuple[_Applies, _Layout]] = {
    GPU_TENSOR_CORE.name: (is_for_tensor_cores, tile_for_tensor_cores),
    GPU_TILING.name: (is_tiled_on_gpu, tile_on_gpu),
    CROSS_THREAD.name: (shares_sums, sum_across_threads),
}


def annotate_on_gpu(sketch: Sketch) -> None:
    """Lay out every block that is still pending."""
    for name in [b.name for b in sketch.graph.blocks]:
        rule = sketch.pending.pop(name, None)
        if rule is None:
            continue
        applies, layout = _LAYOUTS.get(rule, (_always, _by_element))
        (layout if applies(sketch, name) else _by_element)(sketch, name)


def _always(sketch: Sketch, name: str) -> bool:
    return True


def _by_element(sketch: Sketch, name: str) -> None:
    block = sketch.block(name)
    assert isinstance(sketch.target, GpuTarget)
    layout = schedule_points if reductions(block) else schedule_injective
    layout(sketch.sch, block, sketch.target)
