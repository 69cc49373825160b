from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.attention.causal_masks import causal_offset, constant_offset
from tilewright.passes.rewriter import Rewriter

N = Var("N")
INF = float("inf")


class Builder(GraphBuilder):
    """Numbers of queries and keys, and what they are compared to."""

    def numbers(self, shape: tuple[object, ...], start: object = 0, delta: int = 1) -> str:
        attrs = make_attrs("range", {"start": start, "delta": delta, "count": N})
        return self.add(
            "reshape",
            self.add("range", attrs=attrs),
            attrs=make_attrs("reshape", {"shape": shape}),
        )

    def chosen(self, condition: str, seen: float = 0.0, hidden: float = -INF) -> Expr | None:
        numbers = [self.constant(np.asarray(v, np.float32)) for v in (seen, hidden)]
        mask = self.add("where", condition, *numbers)
        g = Rewriter(self.graph(mask))
        for n in g.source.nodes:
            g.visit(n, lambda _, __: None)
        return causal_offset(g, mask)


QUERIES, KEYS = (1, 1, N, 1), (1, 1, 1, N)


@for_each(
    ("op", "order", "offset"),
    [
        ("less_or_equal", "kq", 0),
        ("greater_or_equal", "qk", 0),
        ("less", "kq", None),  # the first query would see nothing
        ("greater", "qk", None),
        ("less_or_equal", "qk", None),
        ("equal", "qk", None),
    ],
)
def test_comparisons(op: str, order: str, offset: int | None) -> None:
    g = Builder("f")
    given = {"q": g.numbers(QUERIES), "k": g.numbers(KEYS)}
    found = g.chosen(g.add(op, *(given[x] for x in order)))
    assert found is (None if offset is None else const(offset))


def test_numbers_that_do_not_start_at_zero() -> None:
    g = Builder("f")
    keys = g.numbers(KEYS)
    assert g.chosen(g.add("less_or_equal", keys, g.numbers(QUERIES, 3))) is const(3)
    assert g.chosen(g.add("less", keys, g.numbers(QUERIES, 3))) is const(2)
    assert g.chosen(g.add("less_or_equal", keys, g.numbers(QUERIES, Var("past")))) is Var("past")
    assert g.chosen(g.add("less_or_equal", keys, g.numbers(QUERIES, -1))) is None


def test_what_is_no_band() -> None:
    g = Builder("f")
    queries, keys = g.numbers(QUERIES), g.numbers(KEYS)
    seen = g.add("less_or_equal", keys, queries)
    assert g.chosen(seen, hidden=-9.0) is None
    assert g.chosen(seen, seen=1.0) is None
    assert g.chosen(g.add("less_or_equal", g.numbers(KEYS, delta=2), queries)) is None
    assert g.chosen(g.add("less_or_equal", queries, queries)) is None
    flags = g.input("flags", tensor(F32, 1, 1, 1, N))
    assert g.chosen(g.add("less_or_equal", flags, flags)) is None


def test_constants() -> None:
    later = np.triu(np.full((4, 6), -INF), 3)
    assert constant_offset(later) == 2
    assert constant_offset(later[None, None]) == 2
    assert constant_offset(np.stack([later, later])) is None
    assert constant_offset(later[0]) is None
    assert constant_offset(np.zeros((4, 6))) == 5
    assert constant_offset(np.tril(np.full((4, 6), -INF), -1)) is None
    assert constant_offset(later == 0) is None
