from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import dense, matmul, refused, softmax
from tilewright.arith.expr import TRUE, Var
from tilewright.arith.walk import conjuncts
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.analysis.reduction import (
    bound_loops,
    check_once,
    check_unmixed,
    reduction_of,
    spatial_nest,
    split_predicate,
)
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.tree import block_spine, loops_of

i, j = Var("i"), Var("j")


def test_conjuncts() -> None:
    a, b, c = i < 3, j < 4, i < j
    assert conjuncts(a & b & c) == (a, b, c)
    assert conjuncts(TRUE) == ()


def test_reduction_of() -> None:
    func = softmax()
    assert reduction_of(func, find_block(func, "m"), "step").op == "max"
    found = reduction_of(func, find_block(func, "s"), "step")
    assert (found.op, str(found.target), str(found.term)) == ("add", "s[i0]", "e[i0, r0]")
    refused("step.reduction", reduction_of, func, find_block(func, "e"), "step")


def test_loops_by_kind_and_predicates() -> None:
    sch = Schedule(matmul())
    sch.split("y.i0", [None, 4])
    sch.split("y.r0", [None, 4])
    block = find_block(sch.func, "y")
    assert bound_loops(block, "R") == {"y.r0.0", "y.r0.1"}
    spatial, reduced = split_predicate(sch.func, block, "step")
    assert str(spatial) == "y.i0.0 * 4 + y.i0.1 < M"
    assert str(reduced) == "y.r0.0 * 4 + y.r0.1 < K"
    check_unmixed(sch.func, block, "step")
    around = loops_of(block_spine(sch.func, "y"))
    nest = spatial_nest(sch.func, block, around, "new", "step")
    assert [f.name for f in nest.loops] == ["new.ax0", "new.ax1", "new.ax2"]
    assert str(nest.predicate) == "new.ax0 * 4 + new.ax1 < M"


def test_a_size_is_no_loop() -> None:
    sch = Schedule(matmul(n=Var("K")))
    sch.fuse("y.i0", "y.i1")  # rows and columns are found by dividing by K
    sch.split("y.r0", [None, 4])
    block = find_block(sch.func, "y")
    check_unmixed(sch.func, block, "step")
    spatial, reduced = split_predicate(sch.func, block, "step")
    assert (spatial, str(reduced)) == (TRUE, "y.r0.0 * 4 + y.r0.1 < K")


def test_mixed_loops() -> None:
    sch = Schedule(matmul())
    sch.fuse("y.i0", "y.i1", "y.r0")
    block = find_block(sch.func, "y")
    refused("step.mixed", check_unmixed, sch.func, block, "step")


def _check_once(sch: Schedule, name: str, own: bool) -> None:
    spine = block_spine(sch.func, name)
    check_once(sch.func, find_block(sch.func, name), loops_of(spine), "step", own)


def test_loops_of_consumers_may_repeat() -> None:
    sch = Schedule(dense())
    _check_once(sch, "mm", own=False)
    sch.split("mm.i0", [None, 4])
    _check_once(sch, "mm", own=False)
    sch.compute_at("mm", "add.i0")
    _check_once(sch, "mm", own=False)
    sch = Schedule(softmax())
    sch.compute_at("s", "y.i1")
    refused("step.repeated", _check_once, sch, "s", False)


def test_fused_loops_are_trusted_only_where_they_are_its_own() -> None:
    sch = Schedule(matmul())
    sch.fuse("y.i0", "y.i1")
    _check_once(sch, "y", own=True)
    refused("step.repeated", _check_once, sch, "y", False)


@for_each("overlap", [True, False])
def test_overlapping_tiles(overlap: bool) -> None:
    from dataclasses import replace

    sch = Schedule(matmul(8, 8, 8))
    sch.split("y.i0", [None, 4])
    block = find_block(sch.func, "y")
    step = 3 if overlap else 4
    bound = replace(block.iters[0], binding=Var("y.i0.0") * step + Var("y.i0.1"))
    changed = replace(block, iters=(bound, *block.iters[1:]))
    around = loops_of(block_spine(sch.func, "y"))
    if overlap:
        refused("step.repeated", check_once, sch.func, changed, around, "step", True)
    else:
        check_once(sch.func, changed, around, "step", True)
