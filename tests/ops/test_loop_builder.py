from __future__ import annotations

from tilewright.arith.expr import Expr, Load, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block, For, Func, Stmt, Store
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.loop_builder import nest, parameters, spatial_block


def test_absent_inputs_are_no_parameters() -> None:
    x = tensor(F32, 2)
    assert list(parameters([x, None, x], [x, x])) == ["x0", "x2", "y0", "y1"]


def test_the_first_loop_is_outermost() -> None:
    outer = nest(("a", "b"), (const(2), const(3)), Store("y0", (const(0),), const(0.0, F32)))
    assert isinstance(outer, For)
    assert isinstance(outer.body, For)
    assert (outer.name, outer.body.name) == ("a", "b")


def test_a_block_in_loops_of_its_own() -> None:
    x = tensor(F32, 2, 3)
    buffers = parameters([x], [x])

    def copy(*i: Expr) -> Stmt:
        return Store("y0", i, Load("x0", i, F32))

    body = spatial_block("copy", x.shape, copy, buffers)
    verify_func(Func("copy", tuple(buffers.values()), ("y0",), body))
    assert isinstance(body, For)
    assert isinstance(body.body, For)
    assert isinstance(body.body.body, Block)
