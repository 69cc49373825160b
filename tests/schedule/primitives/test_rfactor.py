from __future__ import annotations

from tests.schedule.programs import check_schedule, func_of, matmul, refused, softmax
from tilewright.arith.walk import conjuncts
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_block, find_loop
from tilewright.schedule.schedule import Schedule


def test_rfactor(golden) -> None:
    before = softmax(6, 8)
    sch = Schedule(before)
    _, lane = sch.split("s.r0", [None, 4])
    assert sch.rfactor("s", lane) == "s.rf"
    sch.vectorize(lane)
    golden(print_func(sch.func))
    check_schedule(sch, before, exact=False)


def test_guarded_reductions_start_all_partial_results(golden) -> None:
    before = softmax()
    sch = Schedule(before)
    for name in ("s", "m"):
        sch.rfactor(name, sch.split(f"{name}.r0", [None, 4])[1])
        sch.reverse_compute_at(name, f"{name}.i0")
    golden(print_func(sch.func))
    check_schedule(sch, before, exact=False)


def test_all_of_the_reduction() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.rfactor("y", "y.r0")
    assert find_block(sch.func, "y.rf").init is None
    check_schedule(sch, before)


def test_partial_results_are_combined_in_steps() -> None:
    before = softmax(6, 16)
    sch = Schedule(before)
    assert sch.rfactor("s", sch.split("s.r0", [None, 8])[1]) == "s.rf"
    _, lane = sch.split("s.final.ax1", [None, 2])
    assert sch.rfactor("s", lane) == "s.rf2"
    sch.vectorize(lane)
    check_schedule(sch, before, exact=False)
    assert [len(find_block(sch.func, name).iters) for name in ("s.rf", "s.rf2", "s")] == [3, 3, 2]


def test_within_shared_loops() -> None:
    before = softmax()
    sch = Schedule(before)
    sch.compute_at("s", "y.i0")
    sch.rfactor("s", sch.split("s.ax1", [None, 4])[1])
    sch.compute_at("e", "y.i0")
    check_schedule(sch, before, exact=False)
    assert find_loop(sch.func, "s.ax1.1").kind == "serial"


def test_refused() -> None:
    sch = Schedule(softmax())
    refused("rfactor.loop", sch.rfactor, "s", "s.i0")
    refused("rfactor.loop", sch.rfactor, "s", "m.r0")
    refused("rfactor.reduction", sch.rfactor, "e", "e.i0")
    sch.fuse("s.i0", "s.r0")
    refused("rfactor.mixed", sch.rfactor, "s", "s.i0_r0")


def test_other_operations_are_refused() -> None:
    func = func_of(
        """
        func @f(a: f32[8], out y: f32[]) {
          for k in serial(8) {
            block "y" [v: R(8) = k] reads a[v] writes y[]
              init { y[] = 1.0 }
              { y[] = y[] + a[v] }
          }
        }
        """
    )
    refused("rfactor.operation", Schedule(func).rfactor, "y", "k")


def test_partial_results_that_have_a_first_term_start_with_it() -> None:
    before = softmax(6, 9)
    sch = Schedule(before)
    sch.rfactor("s", sch.split("s.r0", [None, 4])[1], own_start=True)
    assert find_block(sch.func, "s.rf").init is not None
    sch.compute_at("s.rf", "s.final.ax0")
    assert len(conjuncts(find_block(sch.func, "s.rf").predicate)) == 1
    check_schedule(sch, before, exact=False)
    sch.decompose_reduction("s.rf", "s.rf.ax2")
    check_schedule(sch, before, exact=False)
