"""When the last tile of rows is lower than the others."""

from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var, const
from tilewright.ir.loop.nodes import Iter
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import loops
from tilewright.schedule.builtin.cpu.gemm.edge_tiles import are_pixels, edge_height, mark_edges
from tilewright.schedule.schedule import Schedule


def _row(extent: Expr) -> Iter:
    return Iter("r", "S", extent, Var("i"))


@for_each(
    ("rows", "height"),
    [(const(64), 0), (const(9), 1), (const(801), 0), (Var("N"), 1)],
)
def test_a_lower_tile_only_where_rows_are_wasted(rows: Expr, height: int) -> None:
    assert edge_height(_row(rows), 8, 1) == height
    whole = 8 if rows is Var("N") else 0
    assert edge_height(_row(rows), 8, 8) == whole, "there is nothing lower"


def test_pixels_are_a_product_of_three_sizes() -> None:
    n, h, w = Var("N"), Var("H"), Var("W")
    assert are_pixels(_row(n * h * w))
    assert are_pixels(_row(n * h * w * 64))
    assert not are_pixels(_row(n * h))
    assert not are_pixels(_row(n * h * w + 1))
    assert not are_pixels(_row(const(4096)))
    assert not are_pixels(None)


def test_no_rows_need_no_edge() -> None:
    assert edge_height(None, 8, 1) == 0


def test_loops_are_marked() -> None:
    func = parse_func("func @f(out y: f32[9]) { for i in serial(9) { y[i] = 0.0 } }")
    for rows, marked in ((const(9), 1), (const(64), 0)):
        sch = Schedule(func)
        mark_edges(sch, "y", _row(rows), 8, 1, ["i"])
        (loop,) = loops(sch.func.body)
        assert dict(loop.annotations).get("edge_rows", 0) == marked
