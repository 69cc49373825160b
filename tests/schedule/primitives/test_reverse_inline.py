from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, func_of, refused, softmax
from tilewright.ir.loop.text import print_func
from tilewright.schedule.schedule import Schedule


def test_reverse_inline(golden) -> None:
    before = dense()
    sch = Schedule(before)
    sch.split("add.i0", [None, 4])
    sch.reverse_inline("y")
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_permuted_and_single_dimensions() -> None:
    before = func_of(
        """
        func @f(a: f32[1, M, N], out y: f32[N, M]) {
          alloc t: f32[1, M, N]
          for t.i, t.j, t.k in serial(1, M, N) {
            block "t" [b: S(1) = t.i, i: S(M) = t.j, j: S(N) = t.k] reads a[b, i, j]
              writes t[b, i, j] { t[b, i, j] = a[b, i, j] * 2.0 }
          }
          for y.i, y.j in serial(N, M) {
            block "y" [j: S(N) = y.i, i: S(M) = y.j] reads t[0, i, j] writes y[j, i]
              { y[j, i] = t[0, i, j] + 1.0 }
          }
        }
        """
    )
    sch = Schedule(before)
    sch.reverse_inline("y")
    check_schedule(sch, before)


def test_refused() -> None:
    refused("reverse-inline.reduction", Schedule(dense()).reverse_inline, "add")
    refused("reverse-inline.source", Schedule(softmax()).reverse_inline, "y")
    refused("reverse-inline.reduction", Schedule(softmax()).reverse_inline, "s")


def test_other_operands_must_be_ready() -> None:
    func = func_of(
        """
        func @f(a: f32[8], out y: f32[8]) {
          alloc t: f32[8]
          alloc u: f32[8]
          for i in serial(8) { block "t" [v: S(8) = i] reads a[v] writes t[v] { t[v] = a[v] } }
          for k in serial(8) { block "u" [v: S(8) = k] reads a[v] writes u[v] { u[v] = a[v] } }
          for j in serial(8) {
            block "y" [v: S(8) = j] reads t[v], u[7 - v] writes y[v] { y[v] = t[v] + u[7 - v] }
          }
        }
        """
    )
    refused("reverse-inline.order", Schedule(func).reverse_inline, "y")
