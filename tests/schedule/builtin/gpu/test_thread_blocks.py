from __future__ import annotations

from tests.ops.gpu_ops import graph_of
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tests.schedule.builtin.scheduled import kinds
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.loop.parse import parse_func
from tilewright.ops.reduction.cumsum_rows import CumsumRowsAttrs
from tilewright.schedule.builtin.gpu.thread_blocks import has_thread_blocks, schedule_thread_blocks
from tilewright.schedule.schedule import Schedule


def test_loops_around_are_the_grid() -> None:
    graph = graph_of("cumsum_rows", CumsumRowsAttrs(4, 2, 2, 1), F32, Var("M"), 8)
    (result,) = scheduled(graph)
    assert kinds(result.func)["grid"] == ["cumsum_rows.l0"]
    for rows in (0, 1, 5):
        assert check(graph, {"M": rows}) == ["thread_blocks"]


def test_several_loops_are_one() -> None:
    func = parse_func("""
    func @f(out y: f32[2, 3, 4]) {
      for i in serial(2) { for j in serial(3) {
        block "y" [a: S(2) = i, b: S(3) = j] writes y[a, b, 0 : 4]
          { for t in thread(4) { y[a, b, t] = 1.0 } }
      } }
    }""")
    assert has_thread_blocks(func)
    sch = Schedule(func)
    schedule_thread_blocks(sch)
    assert [str(step) for step in sch.trace.steps] == ['fuse("i", "j")', 'bind("i_j", "grid")']


def test_blocks_without_threads() -> None:
    func = parse_func("""
    func @f(out y: f32[2]) {
      for i in serial(2) { block "y" [a: S(2) = i] writes y[a] { y[a] = 1.0 } }
    }""")
    assert not has_thread_blocks(func)
