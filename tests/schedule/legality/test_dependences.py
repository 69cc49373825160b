from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.for_each import for_each
from tests.schedule.programs import conv, dense, func_of, softmax
from tilewright.core.errors import LegalityError
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func
from tilewright.schedule.legality.dependences import check
from tilewright.schedule.schedule import Schedule

# Each element needs the one above and to the right: rows must come before columns.
WAVE = """
func @wave(out A: f32[M, N]) {
  for i in serial(M) {
    for j in serial(N) {
      block "A" [vi: S(M) = i, vj: S(N) = j] reads A[vi - 1, vj + 1] writes A[vi, vj]
        { A[vi, vj] = A[vi - 1, vj + 1 ? vi > 0 & vj + 1 < N] + 1.0 }
    }
  }
}
"""


def test_violated_dependence_is_named(golden) -> None:
    with pytest.raises(LegalityError) as caught:
        Schedule(func_of(WAVE), legality=True).reorder("j", "i")
    assert caught.value.code == "legality.dependence"
    golden(str(caught.value))


@for_each(
    ("step", "legal"),
    [
        (lambda s: s.split("i", [None, 4]), True),
        (lambda s: s.fuse("i", "j"), True),
        (lambda s: s.parallel("j"), True),
        (lambda s: s.parallel("i"), False),
        (lambda s: s.reorder(*s.split("j", [None, 4])[::-1]), True),
        (lambda s: s.reorder(*s.split("i", [None, 4])[::-1]), False),
        (lambda s: s.vectorize(s.split("j", [None, 4])[1]), True),
        (lambda s: s.vectorize(s.split("i", [None, 4])[1]), False),
    ],
)
def test_in_place_steps(step: Callable[[Schedule], object], legal: bool) -> None:
    sch = Schedule(func_of(WAVE), legality=True)
    if legal:
        step(sch)
        return
    with pytest.raises(LegalityError):
        step(sch)


def test_tiles_of_the_wave_are_illegal_at_concrete_sizes_too() -> None:
    sch = Schedule(func_of(WAVE), legality=True)
    sch.fuse("i", "j")  # from here on isl needs numbers for the sizes
    outer, inner = sch.split("i_j", [None, 2])
    with pytest.raises(LegalityError):
        sch.reorder(inner, outer)


def test_reductions_may_be_reordered() -> None:
    sch = Schedule(dense(), legality=True)
    i, j = sch.split("mm.i0", [None, 4]), sch.split("mm.i1", [None, 6])
    k = sch.split("mm.r0", [None, 4])
    sch.reorder(k[0], i[0], j[0], k[1], j[1], i[1])
    sch.decompose_reduction("mm", k[0])
    sch.parallel("add.i0")


def test_moving_blocks() -> None:
    sch = Schedule(conv(), legality=True)
    sch.split("y.i1", [None, 4])
    sch.compute_at("conv", "y.i1.0")
    sch.compute_at("twice", "y.i1.0")
    sch.parallel("y.i1.0")
    sch = Schedule(softmax(), legality=True)
    for name in ("s", "e", "m"):
        sch.compute_at(name, "y.i0")
    sch.parallel("y.i0")


def _moved(producer_first: bool) -> Func:
    write = 'for i in serial(M) { block "t" [v: S(M) = i] reads a[v] writes t[v] { t[v] = a[v] } }'
    read = 'for j in serial(M) { block "y" [v: S(M) = j] reads t[v] writes y[v] { y[v] = t[v] } }'
    body = write + read if producer_first else read + write
    return parse_func(f"func @f(a: f32[M], out y: f32[M]) {{ alloc t: f32[M] {body} }}")


def test_consumer_before_producer() -> None:
    with pytest.raises(LegalityError) as caught:
        check(_moved(True), _moved(False))
    assert 'block "t" at (v = 0) must run before block "y" at (v = 0)' in str(caught.value)


def test_lost_instances() -> None:
    def func(extent: str) -> Func:
        return parse_func(
            f"""
            func @f(a: f32[M], out y: f32[M]) {{
              for i in serial({extent}) {{
                block "y" [v: S(M) = i] reads a[v] writes y[v] {{ y[v] = a[v] }}
              }}
            }}
            """
        )

    check(func("M"), func("M"))
    with pytest.raises(LegalityError) as caught:
        check(func("M"), func("M - 1"))
    assert caught.value.code == "legality.lost"


def test_instances_that_are_needed_but_never_run() -> None:
    def func(extent: str) -> Func:
        return parse_func(
            f"""
            func @f(a: f32[M], out y: f32[M]) {{
              alloc t: f32[M]
              for i in serial({extent}) {{
                block "t" [v: S(M) = i] reads a[v] writes t[v] {{ t[v] = a[v] }}
              }}
              for j in serial(M) {{
                block "y" [v: S(M) = j] reads t[v] writes y[v] {{ y[v] = t[v] }}
              }}
            }}
            """
        )

    with pytest.raises(LegalityError):
        check(func("M"), func("M - 1"))


def test_indices_that_depend_on_data() -> None:
    func = parse_func(
        """
        func @f(a: f32[M], p: i64[M], out y: f32[M]) {
          alloc t: f32[M]
          for i in serial(M) { block "t" [v: S(M) = i] reads a[v] writes t[v] { t[v] = a[v] } }
          for j in serial(M) {
            block "y" [v: S(M) = j] reads t[p[v]], p[v] writes y[v] { y[v] = t[p[v]] }
          }
        }
        """
    )
    Schedule(func, legality=True).split("j", [None, 4])
