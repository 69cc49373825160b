from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, dense, matmul, refused
from tilewright.arith.expr import TRUE, Var
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import blocks, find_block, find_loop
from tilewright.schedule.schedule import Schedule


def test_split_guards_what_does_not_divide(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    assert sch.split("y.i0", [None, 8]) == ("y.i0.0", "y.i0.1")
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_split_of_a_reduction_keeps_what_starts_it() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.split("y.r0", [2, None, 3])
    check_schedule(sch, before)


def test_split_that_divides_needs_no_guard() -> None:
    before = matmul(Var("M") * 12, 6, 5)
    sch = Schedule(before)
    sch.split("y.i0", [None, 2, 6])
    sch.split("y.i1", [2, 3])
    assert all(b.predicate is TRUE for b in blocks(sch.func.body))
    assert find_loop(sch.func, "y.i0.0").extent is Var("M")
    check_schedule(sch, before)


def test_split_beyond_the_extent_is_guarded() -> None:
    before = matmul(6, 6, 5)
    sch = Schedule(before)
    sch.split("y.i0", [4, 2])
    assert str(find_block(sch.func, "y").predicate) == "y.i0.0 * 2 + y.i0.1 < 6"
    check_schedule(sch, before)


def test_split_keeps_kind_and_notes() -> None:
    sch = Schedule(dense())
    sch.annotate("y.i0", "versioned", 1)
    sch.parallel("y.i0")
    outer, inner = sch.split("y.i0", [None, 4])
    assert find_loop(sch.func, outer).annotations == (("versioned", 1),)
    assert find_loop(sch.func, inner).kind == "parallel"


@for_each(
    ("factors", "code"),
    [
        ([None, None], "split.open"),
        ([], "split.open"),
        ([None, 0], "split.factor"),
        ([2, 2], "split.product"),
    ],
)
def test_bad_factors_are_refused(factors, code) -> None:
    refused(code, Schedule(matmul()).split, "y.i0", factors)


def test_missing_loop_names_near_ones() -> None:
    text = refused("schedule.no-loop", Schedule(matmul()).split, "y.i", [None, 2])
    assert "'y.i0'" in text
    assert 'in split("y.i", [?, 2]), trace step 1' in text
