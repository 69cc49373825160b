from __future__ import annotations

from tests.schedule.programs import check_schedule, matmul, refused
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_columns_run_as_a_vector() -> None:
    before = matmul()
    sch = Schedule(before)
    _, inner = sch.split("y.i1", [None, 4])
    sch.vectorize(inner)
    assert find_loop(sch.func, inner).kind == "vectorize"
    check_schedule(sch, before)


def test_a_symbolic_extent_is_refused() -> None:
    refused("vectorize.extent", Schedule(matmul()).vectorize, "y.i1")
