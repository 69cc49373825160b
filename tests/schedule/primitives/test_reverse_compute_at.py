from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, func_of, refused, softmax
from tilewright.arith.expr import TRUE, as_int
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_block, loops_above
from tilewright.schedule.schedule import Schedule


def _tiled(sch: Schedule) -> tuple[str, str]:
    i, j = sch.split("mm.i0", [None, 8]), sch.split("mm.i1", [None, 12])
    sch.reorder(i[0], j[0], "mm.r0", i[1], j[1])
    return i[0], j[0]


def test_reverse_compute_at(golden) -> None:
    before = dense()
    sch = Schedule(before)
    _, column = _tiled(sch)
    assert sch.reverse_compute_at("add", column) == ("add.ax0", "add.ax1")
    golden(print_func(sch.func))
    sch.reverse_compute_at("y", column)
    check_schedule(sch, before, exact=False)


def test_whole_tiles_need_no_guard() -> None:
    before = dense(16, 24, 5)
    sch = Schedule(before)
    _, column = _tiled(sch)
    sch.reverse_compute_at("add", column)
    assert find_block(sch.func, "add").predicate is TRUE
    check_schedule(sch, before)


def test_tile_larger_than_the_domain() -> None:
    before = dense(5, 7, 3)
    sch = Schedule(before)
    row, _ = _tiled(sch)
    sch.reverse_compute_at("add", row)
    check_schedule(sch, before)


def test_a_reduction_of_whole_rows_follows_its_producer() -> None:
    before = softmax()
    sch = Schedule(before)
    sch.reverse_compute_at("s", "e.i0")
    check_schedule(sch, before)
    refused("reverse-compute-at.partial", sch.reverse_compute_at, "s", "e.i1")


def test_an_iterator_of_a_loop_around_both_stays_where_it_is() -> None:
    before = parse_func("""func @f(x: f32[3, 4], out p: f32[4], out y: f32[3, 4]) {
      for t in serial(3) {
        for i in serial(4) {
          block "p" [s: S(3) = t, v: S(4) = i] reads x[s, v] writes p[v] { p[v] = x[s, v] }
        }
        for j in serial(4) {
          block "y" [s: S(3) = t, v: S(4) = j] reads p[v] writes y[s, v] { y[s, v] = p[v] + 1.0 }
        }
      }
    }""")
    sch = Schedule(before)
    sch.reverse_compute_at("y", "i")
    assert all(as_int(f.extent) == 1 for f in loops_above(sch.func, "y")[2:])
    check_schedule(sch, before)


def test_refused(golden) -> None:
    sch = Schedule(dense())
    golden(refused("reverse-compute-at.unfinished", sch.reverse_compute_at, "add", "mm.r0"))
    refused("reverse-compute-at.no-producer", sch.reverse_compute_at, "y", "mm.i0")
    refused("reverse-compute-at.no-producer", sch.reverse_compute_at, "mm", "add.i0")
    refused("reverse-compute-at.index", Schedule(conv()).reverse_compute_at, "conv", "twice.i1")


def test_other_operands_must_be_ready() -> None:
    func = func_of(
        """
        func @f(a: f32[8], out y: f32[8]) {
          alloc t: f32[8]
          alloc u: f32[8]
          for i in serial(8) { block "t" [v: S(8) = i] reads a[v] writes t[v] { t[v] = a[v] } }
          for k in serial(8) { block "u" [v: S(8) = k] reads a[v] writes u[v] { u[v] = a[v] } }
          for j in serial(8) {
            block "y" [v: S(8) = j] reads t[v], u[v] writes y[v] { y[v] = t[v] + u[v] }
          }
        }
        """
    )
    refused("reverse-compute-at.order", Schedule(func).reverse_compute_at, "y", "i")
