from __future__ import annotations

from tests.schedule.programs import func_of
from tilewright.ir.loop.nodes import Stmt, Store
from tilewright.ir.loop.text import print_stmt
from tilewright.schedule.insertion_point import placed_after, placed_before
from tilewright.schedule.tree import loop_spine, target_loop

FUNC = func_of(
    """
    func @f(out y: f32[9]) {
      for i in serial(2) {
        y[0] = 0.0
        y[1] = 1.0
        alloc t: f32[1]
        t[0] = 2.0
        y[2] = t[0]
        y[3] = 3.0
      }
    }
    """
)
NEW = func_of("func @g(out y: f32[9]) { y[8] = 8.0 }").body


def _stores(number: str):
    def wanted(s: Stmt) -> bool:
        return isinstance(s, Store) and s.buffer == "y" and str(s.indices[0]) == number

    return wanted


def _order(func) -> list[str]:
    body = print_stmt(target_loop(loop_spine(func, "i")).body)
    return [line.strip()[2] for line in body.splitlines() if line.strip().startswith("y[")]


def test_before_and_after() -> None:
    spine = loop_spine(FUNC, "i")
    assert _order(placed_before(FUNC, spine, NEW, _stores("1"))) == ["0", "8", "1", "2", "3"]
    assert _order(placed_after(FUNC, spine, NEW, _stores("0"))) == ["0", "8", "1", "2", "3"]


def test_within_an_allocation() -> None:
    spine = loop_spine(FUNC, "i")
    assert _order(placed_before(FUNC, spine, NEW, _stores("2"))) == ["0", "1", "8", "2", "3"]
    assert _order(placed_after(FUNC, spine, NEW, _stores("2"))) == ["0", "1", "2", "8", "3"]
