"""Copies from global to shared memory by all threads of a block.

    for i, k in serial(128, 64) { T[i, k] = A[...] }
      →
    for t in thread(256), n in unrolled(4), v in vector(8) { T[...] = A[...] }

Neighbouring threads copy neighbouring vectors. With pipeline stages these become `cp.async`
(`finalize/gpu/software_pipeline.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Load, Var
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Buffer, Store
from tilewright.schedule.analysis.blocks import flat_index, in_groups
from tilewright.schedule.schedule import Schedule

# The least that `cp.async` copies.
WORD_BYTES = 4


def aligned_elements(block: Block, buffers: dict[str, Buffer], most: int) -> int:
    """The neighbours of a row that a copy finds aligned in memory, a power of two up to `most`.

    Where there are not even words of 4 bytes, a thread has `most` all the same, one by one.
    """
    assert isinstance(block.body, Store)
    load, column = block.body.value, block.iters[-1]
    assert isinstance(load, Load)
    count = most
    while count * load.dtype.bytes >= WORD_BYTES:
        flat, extents = in_groups(flat_index(load, buffers[load.buffer]), column, count)
        inner = Var(list(extents)[-1])
        start = simplify(flat - inner, extents)
        if inner.name not in free_vars(start) and prove((start % count).eq(0), extents):
            return count
        count //= 2
    return most


def copy_by_threads(sch: Schedule, loops: Sequence[str], threads: int, vector: int = 0) -> None:
    """Distribute the loops of a copy over threads, in vectors of so many elements, if any."""
    vectors = [vector] if vector else []
    part, thread, *inner = sch.split(sch.fuse(*loops), [None, threads, *vectors])
    sch.reorder(thread, part, *inner)
    sch.bind(thread, "thread")
    sch.unroll(part)
    if vector > 1:
        sch.vectorize(inner[0])
