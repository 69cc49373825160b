"""The Mersenne Twister against NumPy's."""

from __future__ import annotations

import numpy as np

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.ops.run_with_dims import run_op, type_of
from tilewright.arith.expr import Var, const
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.random.mt19937 import Mt19937Attrs


@for_each(("seed", "count"), [(0, 1), (7, 313), (2**32 - 1, 312), (5, 0)])
def test_against_numpy(seed: int, count: int) -> None:
    found = run_op("mt19937", attrs=Mt19937Attrs(const(count), seed))
    np.testing.assert_array_equal(found, np.random.RandomState(seed).uniform(size=count))


def test_native() -> None:
    x = np.zeros(700, np.float32)
    g = GraphBuilder("g")
    g.input("x", type_of(x, ("N",)))
    numbers = g.add("mt19937", attrs=Mt19937Attrs(Var("N"), 3))
    with check_native(g.graph(numbers), {"x": x}) as model:
        np.testing.assert_array_equal(model(x), np.random.RandomState(3).uniform(size=700))
