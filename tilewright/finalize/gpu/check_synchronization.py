"""Whether the roles and threads of a finalized kernel synchronize: no races, no deadlocks.

The kernel's control flow runs in the interpreter, with barriers, mbarriers, flags and what each
tile touches; what tiles compute is left out, as fragments of finalized kernels are distributed over
lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import as_int, const
from tilewright.ir.loop.interp.roles import TileFacts
from tilewright.ir.loop.interp.to_python import compile_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.scalar_semantics import quiet
from tilewright.schedule.intrin.nvidia.cp_async import CP_ASYNC, CP_ASYNC_PADDED
from tilewright.schedule.intrin.table import INTRINSICS

# The bytes of copies that threads do not wait for.
COPIED = {name: size for table in (CP_ASYNC, CP_ASYNC_PADDED) for size, name in table.items()}


def check_synchronization(func: Func, sizes: Mapping[str, int] | None = None) -> None:
    """Raise an `ExecutionError` where roles or threads race, or wait for ever."""
    known = sizes or {}
    arrays = {
        p.name: np.zeros([evaluate(d, known) for d in p.shape], p.dtype.numpy) for p in func.params
    }
    compiled = compile_func(func, lambda tile: tile_facts(tile.intrinsic))
    with quiet():
        compiled.run(arrays, known)


@cache
def tile_facts(intrinsic: str) -> TileFacts:
    """What an intrinsic touches: its operands in panels are one after another in memory."""
    row = INTRINSICS[intrinsic]
    shapes = []
    for p in parse_func(row.pattern).params:
        height, width = (as_int(d) or 0 for d in (const(1), *p.shape)[-2:])
        panels = row.tma_box is not None or p.name in row.swizzle_panels
        shapes.append((1, height * width) if panels else (height, width))
    return TileFacts(tuple(shapes), row.in_flight, COPIED.get(intrinsic, 0))
