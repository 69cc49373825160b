from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, func_of, refused, softmax
from tilewright.arith.expr import Var
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_compute_at(golden) -> None:
    before = dense()
    sch = Schedule(before)
    sch.split("y.i0", [None, 4])
    assert sch.compute_at("add", "y.i0.0") == ("add.ax0", "add.ax1")
    sch.compute_at("mm", "add.ax0")
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_halo(golden) -> None:
    before = conv()
    sch = Schedule(before)
    sch.split("conv.i1", [None, 4])
    sch.reorder("conv.i1.0", "conv.i0")
    sch.compute_at("twice", "conv.i1.0")
    golden(print_func(sch.func))
    assert str(find_loop(sch.func, "twice.ax1").extent) == "6"
    check_schedule(sch, before)


def test_chain_of_rows() -> None:
    before = softmax()
    sch = Schedule(before)
    for name in ("s", "e", "m"):
        sch.compute_at(name, "y.i0")
    check_schedule(sch, before)


def test_moved_again() -> None:
    before = dense()
    sch = Schedule(before)
    sch.compute_at("add", "y.i0")
    sch.compute_at("add", "y.i1")
    sch.compute_at("add", "y.i0")
    check_schedule(sch, before)


def test_refused(golden) -> None:
    sch = Schedule(softmax())
    golden(refused("compute-at.consumer-outside", sch.compute_at, "e", "y.i0"))
    refused("compute-at.allocation", sch.compute_at, "y", "e.i0")
    sch = Schedule(dense(8, 8, 8))
    sch.vectorize("y.i1")
    refused("compute-at.vectorized", sch.compute_at, "add", "y.i1")


def test_started_reductions_stay() -> None:
    sch = Schedule(dense())
    sch.decompose_reduction("mm", "mm.r0")
    refused("compute-at.writers", sch.compute_at, "mm", "add.i0")


def test_what_depends_on_data_is_computed_whole() -> None:
    before = func_of(
        """
        func @f(x: f32[M], p: i64[K], out y: f32[K]) {
          alloc t: f32[M]
          for t.i in serial(M) {
            block "t" [v: S(M) = t.i] reads x[v] writes t[v] { t[v] = x[v] * 2.0 }
          }
          for y.i in serial(K) {
            block "y" [v: S(K) = y.i] reads t[max(min(p[v], M - 1), 0)], p[v] writes y[v]
              { y[v] = t[max(min(p[v], M - 1), 0)] }
          }
        }
        """
    )
    sch = Schedule(before)
    sch.split("y.i", [None, 4])
    sch.compute_at("t", "y.i.1")
    assert find_loop(sch.func, "t.ax0").extent is Var("M")
    check_schedule(sch, before)


def test_a_step_of_a_loop_around_both_stays() -> None:
    before = func_of(
        """
        func @f(x: f32[M], out y: f32[K, M]) {
          alloc t: f32[M]
          for s in serial(K) {
            for t.i in serial(M) {
              block "t" [u: S(K) = s, v: S(M) = t.i] reads x[v] writes t[v]
                { t[v] = select(u == 0, 0.0, x[v]) }
            }
            for y.i in serial(M) {
              block "y" [u: S(K) = s, v: S(M) = y.i] reads t[v] writes y[u, v] { y[u, v] = t[v] }
            }
          }
        }
        """
    )
    sch = Schedule(before)
    sch.split("y.i", [None, 4])
    sch.compute_at("t", "y.i.1")
    assert str(find_loop(sch.func, "t.ax0").extent) == "1"
    check_schedule(sch, before)
