from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, dense
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
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
