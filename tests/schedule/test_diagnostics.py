from __future__ import annotations

from tests.schedule.programs import dense
from tilewright.core.errors import Loc
from tilewright.ir.loop.nodes import Alloc
from tilewright.ir.loop.walk import find_block, find_loop
from tilewright.schedule.diagnostics import Mark, refuse


def test_the_statement_is_marked() -> None:
    func = dense()
    text = str(refuse(func, "a.b", "no", find_loop(func, "mm.i1"), help="try"))
    assert text == (
        "ScheduleError[a.b]: no\n"
        "   5 |     for mm.i1 in serial(N) {\n"
        "     |         ^^^^^\n"
        "  help: try"
    )
    text = str(refuse(func, "a.b", "no", find_block(func, "add"), focus="bias[i1]"))
    assert text.splitlines()[2].strip("| ") == "^" * len("bias[i1]")


def test_without_a_statement() -> None:
    assert refuse(dense(), "a.b", "no").notes == ()


def test_other_statements_are_marked_whole() -> None:
    func = dense()
    assert isinstance(func.body, Alloc)
    assert "^^^^^" in str(Mark(func, func.body, ""))
    assert refuse(func, "a.b", "no").loc == Loc()
