from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import NOWHERE
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName, axes_of, axis_of
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def call(**args: object) -> AtenCall:
    return AtenCall("aten.test.default", "test", args, (tensor(F32, 2),), frozenset(), NOWHERE)


def test_operands_of_every_kind() -> None:
    c, n = TorchContext(GraphBuilder("g")), call()
    x = c.g.input("x", tensor(I64, Var("N")))
    assert c.type(c.operand(n, ValueName(x), F32)) == tensor(F32, Var("N"))
    assert c.type(c.operand(n, 2, F32)) == tensor(F32)
    assert c.type(c.operand(n, Var("N"), F32)) == tensor(F32)
    assert c.g.constant_data(c.operand(n, const(3), F32)) == 3
    assert [c.type(v).dtype for v in c.operands(n, ValueName(x), 2.5)] == [F32, F32]


def test_shapes_that_stay_cost_nothing() -> None:
    c, n = TorchContext(GraphBuilder("g")), call()
    x = c.g.input("x", tensor(F32, 2, 3))
    assert c.reshape(n, x, (2, 3)) == x
    assert c.transpose(n, x, (0, 1)) == x
    assert c.elements(x) is const(6)


def test_axes() -> None:
    assert axis_of(-1, 3) == 2
    assert axis_of(-1, 0) == 0
    assert axes_of(call(dim=None), 2) == (0, 1)
    assert axes_of(call(dim=[]), 2) == (0, 1)
    assert axes_of(call(dim=[-1]), 3) == (2,)
    assert axes_of(call(dim=[0]), 0) == ()
    assert call(dim=1).get("keepdim", 5) == 5
