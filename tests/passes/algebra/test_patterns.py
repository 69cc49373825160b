from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.algebra.patterns import (
    MAX_FACTORS,
    GraphPattern,
    GraphRule,
    NamedPattern,
    apply,
    const,
    product,
    uniform,
    wild,
)
from tilewright.passes.rewriter import Rewriter

x, y = wild("x y")
c, d = const("c d")


class Values(GraphBuilder):
    """Two inputs `a` and `b`, and what is computed of them."""

    def __init__(self, dtype: object = F32) -> None:
        super().__init__("f")
        self.dtype = dtype
        self.a = self.input("a", tensor(dtype, Var("N"), 4))
        self.b = self.input("b", tensor(dtype, Var("N"), 4))

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value, self.dtype.numpy))  # type: ignore[attr-defined]

    def matches(self, pattern: GraphPattern, value: str) -> list[dict[str, object]]:
        """Every way in which the value has the shape."""
        g = Rewriter(self.graph(value))
        for n in g.source.nodes:
            g.keep(n)
        return list(pattern.match(g, value, {}))


def test_a_name_stands_for_one_value():
    g = Values()
    same, other = g.add("sub", g.a, g.a), g.add("sub", g.a, g.b)
    assert g.matches(x - x, same) == [{"x": "a"}]
    assert g.matches(x - x, other) == []
    assert g.matches(x - y, other) == [{"x": "a", "y": "b"}]


def test_commutative_operands_change_places():
    g = Values()
    half = g.number(0.5)
    for total in (g.add("add", g.a, half), g.add("add", half, g.a)):
        assert g.matches(x + 0.5, total) == [{"x": "a"}]
        assert g.matches(0.5 + x, total) == [{"x": "a"}]
        assert g.matches(x + c, total) == [{"x": "a", "c": half}]
    assert g.matches(x - 0.5, g.add("sub", half, g.a)) == []


def test_matching_tries_again_after_a_wrong_guess():
    g = Values()
    sigmoid = g.add("sigmoid", g.a)
    value = g.add("add", sigmoid, g.add("add", g.b, g.add("mul", sigmoid, g.a)))
    assert {"x": "a", "y": "b"} in g.matches(
        apply("sigmoid", x) + (y + apply("sigmoid", x) * x), value
    )


def test_zeros_have_signs():
    g = Values()
    assert g.matches(x + 0.0, g.add("add", g.a, g.number(-0.0))) == []
    assert g.matches(x + -0.0, g.add("add", g.a, g.number(-0.0))) == [{"x": "a"}]


def test_attributes_and_inner_values_are_named():
    g = Values()
    root = g.add("sqrt", g.a)
    found = g.matches(-NamedPattern("y", apply("sqrt", x, attrs="t")), g.add("neg", root))
    assert [(f["x"], f["y"]) for f in found] == [("a", root)]
    assert found[0]["t"] == g.nodes[0].attrs


@for_each("dtype", [F32, F16])
def test_products_in_any_order(dtype):
    g = Values(dtype)

    def mul(p: str, q: str) -> str:
        return g.add("mul", p, q)

    k, four = g.number(0.3), g.number(4.0)
    cubes = [
        mul(mul(k, g.a), mul(g.a, g.a)),
        mul(g.a, mul(g.a, mul(g.a, k))),
        g.add("div", mul(mul(g.a, mul(g.a, g.a)), g.number(1.2)), four),
    ]
    for cube in cubes:
        assert g.matches(product(0.3, x, x, x), cube) == [{"x": "a"}]
        assert g.matches(product(0.31, x, x, x), cube) == []
        assert g.matches(product(0.3, x, x), cube) == []


def test_a_factor_may_be_a_product_itself():
    g = Values()
    ab = g.add("mul", g.a, g.b)
    value = g.add("mul", g.add("tanh", ab), g.add("mul", g.number(2.0), ab))
    assert g.matches(product(2.0, x, apply("tanh", x)), value) == [{"x": ab}]


def test_endless_products_are_given_up():
    g = Values()
    power = g.a
    for _ in range(40):
        power = g.add("mul", power, power)
    assert g.matches(product(1.0, *[x] * MAX_FACTORS), power) == []


def test_results_of_constants_are_computed():
    rule = GraphRule("r", (x * c) * d, x * (c * d), when=lambda c, d: c.size == d.size)
    g = Values()
    scaled = g.add("mul", g.add("mul", g.a, g.number(3.0)), g.number(5.0))
    target = Rewriter(g.graph(scaled))
    target.keep(g.nodes[0])
    result = rule.apply(target, g.nodes[1])
    assert [n.op for n in target.nodes] == ["mul", "mul"]
    produced = target.producer(result or "")
    assert produced is not None
    assert target.constant_data(produced.inputs[1]) == np.float32(15)


def test_uniform_constants():
    assert uniform(np.full((2, 3), 4.0)) == 4.0
    assert uniform(np.arange(3)) is None
    assert uniform(np.empty(0)) is None
    assert uniform(np.array([True, True])) is None
    assert np.isnan(uniform(np.array(np.nan)) or 0)
