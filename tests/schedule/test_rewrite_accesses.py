from __future__ import annotations

from tests.schedule.programs import dense
from tilewright.arith.expr import Load, Select, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.walk import buffers, find_block
from tilewright.schedule.rewrite_accesses import AccessRewriter, simplify_loads


def test_only_blocks_that_touch_the_buffer_change() -> None:
    func = dense()

    def shifted(load, extents):
        assert extents == {"i0": Var("M"), "i1": Var("N")}
        return Load("bias", (load.indices[0] + 1,), load.dtype)

    after = AccessRewriter("bias", buffers(func), shifted).func(func)
    assert find_block(after, "mm") is find_block(func, "mm")
    assert find_block(after, "y") is find_block(func, "y")
    assert [str(r.ranges[0][0]) for r in find_block(after, "add").reads] == ["i1 + 1", "i0"]


def test_nothing_to_do_keeps_the_object() -> None:
    func = dense()
    assert AccessRewriter("bias", buffers(func)).func(func).body is func.body


def test_stores_change_the_signature() -> None:
    func = dense()
    known = buffers(func)

    def elsewhere(store, extents):
        return Store("mm", store.indices, store.value)

    after = AccessRewriter("add", known, store=elsewhere).block(find_block(func, "add"))
    assert [r.buffer for r in after.writes] == ["mm"]


def test_tidy_loads() -> None:
    i = Var("i")
    load = Load("a", ((i * 4 + 3) // 4,), F32, i < 8)
    tidy = simplify_loads(load + 1.0, {"i": const(8)})
    assert str(tidy) == "a[i] + 1.0"
    outside = Select(i < 4, Load("a", (i,), F32), const(0.0, F32))
    assert simplify_loads(outside, {"i": const(2)}) is outside
