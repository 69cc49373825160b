from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, dense
from tilewright.arith.expr import call
from tilewright.core.dtypes import F32
from tilewright.ir.loop.annotations import OUTLINED
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import loops_above
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.cpu.epilogue import (
    MIN_STEPS,
    MIN_VECTORS,
    fuse_epilogue,
    fuse_through_memory,
    goes_through_memory,
    unroll_and_vectorize,
)
from tilewright.schedule.schedule import Schedule


@for_each("unroll_rows", [False, True])
def test_an_epilogue_runs_on_each_tile_in_vectors(unroll_rows: bool) -> None:
    before = dense(6, 8, 4)
    sch = Schedule(before)
    sch.inline("add")
    tile, row = sch.split("mm.i0", [None, 2])
    sch.reorder(tile, "mm.r0", row, "mm.i1")
    rows = fuse_epilogue(sch, "y", tile, 4, unroll_rows=unroll_rows)
    around = loops_above(sch.func, "y")
    assert [loop.name for loop in around][:2] == [tile, *rows]
    kinds = [loop.kind for loop in around]
    assert kinds == ["serial", "unroll" if unroll_rows else "serial", "unroll", "vectorize"]
    check_schedule(sch, before)


def test_the_last_loop_is_vectorized() -> None:
    sch = Schedule(dense(6, 8, 4))
    vector, lane = sch.split("y.i1", [None, 4])
    unroll_and_vectorize(sch, vector, lane)
    assert [loop.kind for loop in loops_above(sch.func, "y")][1:] == ["unroll", "vectorize"]


def _activated(function: str) -> Func:
    b = Builder("activated")
    x, w = b.input("x", F32, (6, 4)), b.input("w", F32, (4, 8))
    mm = b.compute("mm", (6, 8), lambda i, j: b.sum((4,), lambda r: x[i, r] * w[r, j]))
    y = b.compute("y", (6, 8), lambda i, j: call(function, mm[i, j]))
    return program_func(b.program(y))


@for_each(
    ("function", "vectors", "steps", "expected"),
    [
        ("gelu", MIN_VECTORS, MIN_STEPS, True),
        ("gelu", MIN_VECTORS - 1, MIN_STEPS, False),
        ("gelu", MIN_VECTORS, MIN_STEPS - 1, False),
        ("sqrt", MIN_VECTORS, MIN_STEPS, False),
    ],
)
def test_which_epilogues_go_through_memory(
    function: str, vectors: int, steps: int, expected: bool
) -> None:
    epilogue = block_graph(_activated(function)).block("y")
    assert goes_through_memory(epilogue, vectors, steps) == expected


def test_an_epilogue_that_reads_the_tile_from_memory() -> None:
    before = _activated("gelu")
    sch = Schedule(before)
    tile, row = sch.split("mm.i0", [None, 2])
    sch.reorder(tile, "mm.r0", row, "mm.i1")
    copy, rows = fuse_through_memory(sch, "y", "mm", tile, 4)
    loop = loops_above(sch.func, "y")[1]
    assert (loop.name, loop.kind) == (rows, "serial")
    assert OUTLINED.is_on(loop)
    assert loops_above(sch.func, "mm.local")[1].name == copy
    check_schedule(sch, before)
