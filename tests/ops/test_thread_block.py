from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Load, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, Func, Seq, Store
from tilewright.ir.loop.parse import parse_func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.thread_mapping import threads_of
from tilewright.ir.loop.verify import verify_func
from tilewright.ops.thread_block import ThreadBlock, at, put


def test_each_thread_and_reductions() -> None:
    """Rows of eight: y is the sum of a row, z that of four neighbours."""
    b = ThreadBlock("b", 2, 8)
    own, total, part = (b.register(name, F32) for name in ("own", "total", "part"))
    zeros = Seq((put(total, const(0.0, F32)), put(part, const(0.0, F32))))
    body = Seq(
        (
            b.each(lambda row, lane: put(own, Load("x", (row * 8 + lane,), F32))),
            b.each(lambda row, lane: zeros),
            b.reduced(put(total, at(total) + at(own))),
            b.reduced_in_groups(4, put(part, at(part) + at(own))),
            b.each(lambda row, lane: Store("y", (row * 8 + lane,), at(total))),
            b.each(lambda row, lane: Store("z", (row * 8 + lane,), at(part))),
        )
    )
    params = tuple(Buffer(name, F32, (const(16),)) for name in "xyz")
    func = Func("f", params, ("y", "z"), b.allocated(body))
    verify_func(func)
    assert threads_of(func.body) == 16
    assert print_func(parse_func(print_func(func))) == print_func(func)
    x, y, z = np.arange(16, dtype=np.float32), *np.zeros((2, 16), np.float32)
    run_func(func, {"x": x, "y": y, "z": z})
    np.testing.assert_array_equal(y, np.repeat(x.reshape(2, 8).sum(1), 8))
    np.testing.assert_array_equal(z, np.repeat(x.reshape(4, 4).sum(1), 4))


def test_a_warp_is_the_largest_group() -> None:
    for lanes, group in ((8, 8), (64, 32)):
        b = ThreadBlock("b", 1, lanes)
        s = b.register("s", F32)
        nest = b.reduced_in_warps(put(s, at(s) + at(s)))
        assert threads_of(nest) == lanes
        assert f"allreduce({group})" in print_func(Func("f", (), (), b.allocated(nest)))


def test_loops_have_names_of_their_own() -> None:
    b = ThreadBlock("b", 1, 2)
    s = b.register("s", F32)
    body = b.repeat("serial", 3, lambda n: b.repeat("unroll", const(2), lambda m: put(s, at(s))))
    verify_func(Func("f", (), (), b.allocated(body)))
