"""The order of finalization, one literal list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.finalize.combine_loads import combine_loads
from tilewright.finalize.compact_buffers import compact_buffers
from tilewright.finalize.cpu.edge_tiles import edge_tiles
from tilewright.finalize.cpu.interleave_stores import interleave_stores
from tilewright.finalize.cpu.known_masks import known_masks
from tilewright.finalize.cpu.loop_partition import loop_partition
from tilewright.finalize.cpu.padding_last import padding_last
from tilewright.finalize.cpu.repeat_loads import repeat_loads
from tilewright.finalize.cpu.shift_inwards import shift_inwards
from tilewright.finalize.cpu.skip_padding import skip_padding
from tilewright.finalize.cpu.transpose_loads import transpose_loads
from tilewright.finalize.expand_tiles import expand_tiles
from tilewright.finalize.flatten import flatten
from tilewright.finalize.lower_blocks import lower_blocks
from tilewright.finalize.math.expand import expand_math
from tilewright.finalize.report_indices import report_indices
from tilewright.finalize.unroll import unroll
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.nodes import Func
from tilewright.target.cpu import CpuTarget

Step = tuple[str, Callable[[Func], Func]]

STEPS: tuple[Step, ...] = (
    ("lower-blocks", lower_blocks),
    ("skip-padding", skip_padding),
    ("compact-buffers", compact_buffers),
    ("flatten", flatten),
    ("shift-inwards", shift_inwards),
    ("padding-last", padding_last),
    ("edge-tiles", edge_tiles),
    ("loop-partition", loop_partition),
    ("vectorize", vectorize),
    ("unroll", unroll),
    ("transpose-loads", transpose_loads),
    ("known-masks", known_masks),
    ("repeat-loads", repeat_loads),
    ("interleave-stores", interleave_stores),
    ("expand-math", expand_math),
)


def steps(target: CpuTarget) -> tuple[Step, ...]:
    """All steps by name; some know the machine."""
    first = ("expand-tiles", partial(expand_tiles, target=target))
    combine = ("combine-loads", partial(combine_loads, target=target))
    return (first, *STEPS, combine, ("report-indices", report_indices))


def finalize(func: Func, target: CpuTarget) -> Func:
    """Plain loops over flat buffers, ready for the emitter."""
    for _, step in steps(target):
        func = step(func)
    return func
