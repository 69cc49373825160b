from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.traced_value import TracedValue, where


def test_arithmetic() -> None:
    g = GraphBuilder("f")
    x = TracedValue(g, g.input("x", tensor(F32, 4)))
    assert x.dtype == F32
    assert x.shape == g.type("x").shape
    y = 2 * x + 1 - x / 4 - (3 - x) * -x
    z = where(x.apply("greater", 0), y, x.apply("abs").cast(I64).cast(F32))
    given = np.array([-2.5, 0, 1, 3], "f4")
    found = run_graph(g.graph(y.name, z.name), {"x": given})
    expected = 2 * given + 1 - given / 4 - (3 - given) * -given
    np.testing.assert_allclose(found[y.name], expected)
    np.testing.assert_allclose(found[z.name], np.where(given > 0, expected, [2, 0, 1, 3]))


def test_numbers_that_a_type_does_not_have() -> None:
    g = GraphBuilder("f")
    with pytest.raises(TypeCheckError, match="inf is no i64"):
        TracedValue(g, g.input("x", tensor(I64, 4))) * float("inf")
