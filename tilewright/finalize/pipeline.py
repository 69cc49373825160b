"""The order of finalization, one literal list."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.finalize.combine_loads import combine_loads
from tilewright.finalize.compact import compact
from tilewright.finalize.edge_tiles import edge_tiles
from tilewright.finalize.expand_math import expand_functions
from tilewright.finalize.expand_tiles import expand_tiles
from tilewright.finalize.flatten import flatten
from tilewright.finalize.lower_blocks import lower_blocks
from tilewright.finalize.partition import partition
from tilewright.finalize.transpose_loads import transpose_loads
from tilewright.finalize.unroll import unroll
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.nodes import Func
from tilewright.target.cpu import Target

STEPS: tuple[tuple[str, Callable[[Func], Func]], ...] = (
    ("lower-blocks", lower_blocks),
    ("compact", compact),
    ("flatten", flatten),
    ("edge-tiles", edge_tiles),
    ("partition", partition),
    ("vectorize", vectorize),
    ("unroll", unroll),
    ("transpose-loads", transpose_loads),
    ("expand-math", expand_functions),
)


def finalize(func: Func, target: Target) -> Func:
    """Plain loops over flat buffers, ready for the emitter."""
    func = expand_tiles(func, target)
    for _, step in STEPS:
        func = step(func)
    return combine_loads(func, target)
