"""Copies from global to shared memory by all threads of a block.

    for i, k in serial(128, 64) { T[i, k] = A[...] }
      →
    for t in thread(256), n in unrolled(4), v in vector(8) { T[...] = A[...] }

Neighbouring threads copy neighbouring vectors. With pipeline stages these become `cp.async`
(`finalize/gpu/software_pipeline.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.schedule import Schedule


def copy_by_threads(sch: Schedule, loops: Sequence[str], threads: int, vector: int = 0) -> None:
    """Distribute the loops of a copy over threads, in vectors of so many elements, if any."""
    vectors = [vector] if vector else []
    part, thread, *inner = sch.split(sch.fuse(*loops), [None, threads, *vectors])
    sch.reorder(thread, part, *inner)
    sch.bind(thread, "thread")
    sch.unroll(part)
    if vector > 1:
        sch.vectorize(inner[0])
