from __future__ import annotations

from itertools import product

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import FrontendError
from tilewright.frontends.slice_bounds import add_slice, bounds
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder

N, S = Var("N"), Var("S")
MAX, MIN = 2**63 - 1, -(2**63)


def test_bounds_are_those_of_onnx() -> None:
    starts, stops = (0, 2, -2, 9, -9, MAX, MIN), (0, 3, -1, 9, -9, MAX, MIN)
    for size, step, start, stop in product((0, 1, 5), (1, 2, -1, -3, 7), starts, stops):
        first, last = bounds(const(start), const(stop), step, const(size))
        # Backwards ONNX begins at the first element where a start lies before it.
        begin = max(start, -size) if step < 0 else start
        expected = range(size)[slice(begin, stop, step)]
        found = range(first.value, last.value, step)
        assert list(found) == list(expected), (size, step, start, stop)


@for_each(
    ("start", "stop", "step", "size", "expected"),
    [
        (const(0), const(MAX), 1, N, "0 N"),
        (const(1), const(10**9), 1, N, "1 N"),
        (const(-1), const(MAX), 1, N, "N - 1 N"),
        (const(0), const(-1), 1, N, "0 N - 1"),
        (const(0), const(512), 1, N, "0 min(N, 512)"),
        (const(0), S, 1, const(512), "0 S"),
        (const(0), N + 1, 1, N, "0 N"),
        (-S, const(MAX), 1, N, "N - S N"),
        (const(-1), const(MIN), -1, N, "N - 1 -1"),
        (const(MAX), const(0), -1, N, "N - 1 0"),
    ],
)
def test_symbolic_bounds(start: Expr, stop: Expr, step: int, size: Expr, expected: str) -> None:
    first, last = bounds(start, stop, step, size)
    assert f"{first} {last}".replace("(-1)", "-1") == expected


def test_slices_are_checked() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, 5, N))
    assert add_slice(g, x, {0: (const(0), const(5), 1)}, "y") == x
    assert g.type(add_slice(g, x, {1: (const(0), S, 1)}, "y")).shape == (const(5), S)
    assert len(g.checks) == 1
    with pytest.raises(FrontendError, match="3 to 7 is not within 5 elements"):
        add_slice(g, x, {0: (const(3), const(7), 1)}, "y")
