"""Numbers, real tensors and pairs are all operands of complex operators."""

from __future__ import annotations

import numpy as np

from tests.ops.run_op import exprs
from tilewright.core.dtypes import C64, F32
from tilewright.core.errors import NOWHERE
from tilewright.frontends.torch.complex_value import ComplexValue
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName
from tilewright.frontends.torch.convert.complex_operands import (
    as_value,
    as_whole_value,
    complex_operands,
    times_alpha,
)
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph


def test_operands() -> None:
    g = GraphBuilder("operands")
    c = TorchContext(g)
    x, y = (g.input(name, TensorType(F32, exprs(3))) for name in "xy")
    args = {"self": ComplexValue(x, y), "other": 2 - 1j, "real": ValueName(x), "alpha": 3}
    t = TensorType(C64, exprs(3))
    n = AtenCall("aten.add.Tensor", "n", args, (t,), frozenset(), NOWHERE)
    z, number, real = complex_operands(c, n, "self", "other", "real")
    tripled = as_value(times_alpha(c, n, z))
    whole = as_whole_value(c, n, number)
    graph = g.graph(tripled.re, tripled.im, whole.im, real.im.name)
    given = {"x": np.array([1, 2, 3], "f4"), "y": np.array([4, 5, 6], "f4")}
    found = run_graph(graph, given)
    values = [found[name] for name in graph.outputs]
    for value, right in zip(values, ([3, 6, 9], [12, 15, 18], [-1, -1, -1], 0), strict=True):
        np.testing.assert_array_equal(value, right)
