from __future__ import annotations

from tests.ir.loop.test_walk import FUNC, ROLES
from tilewright.ir.loop.nodes import For, Let
from tilewright.ir.loop.rename import rename_buffers, rename_loops
from tilewright.ir.loop.text import print_stmt
from tilewright.ir.loop.walk import statements_in


def test_nothing_renamed_is_the_same_object():
    assert rename_buffers(FUNC.body, {"X": "Y"}) is FUNC.body
    assert rename_buffers(ROLES.body, {"X": "Y"}) is ROLES.body


def test_renaming_reaches_everything(golden):
    golden(print_stmt(rename_buffers(FUNC.body, {"T": "T.local", "A": "A.packed", "C": "D"})))


def test_renaming_what_is_waited_for():
    renamed = print_stmt(rename_buffers(ROLES.body, {"full": "F", "arrived": "counter"}))
    assert "full" not in renamed
    assert "arrived" not in renamed


def test_loops_and_lets_get_other_names():
    renamed = list(statements_in(rename_loops(ROLES.body, "copy")))
    names = [s.name for s in renamed if isinstance(s, For | Let)]
    assert names == ["b.copy", "g.copy", "tile.copy"]
    assert next(str(s.value) for s in renamed if isinstance(s, Let)) == "b.copy * 2 + g.copy"
