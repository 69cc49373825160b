"""Every rule fires on its example, and leaves the numbers as they were."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np
import pytest

from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, F64, I32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.rules import RULES
from tilewright.passes.algebra.simplify_algebra import simplify_algebra
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.rewriter import rewrite_graph

N = 4  # what the symbolic size is when graphs are run
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.4e38, 1e-40, -2.5)


class Formula(GraphBuilder):
    """A builder with short names for what the examples are made of."""

    def x(self, dtype: object = F32) -> str:
        return self.input("x", tensor(dtype, Var("N"), 6))

    def number(self, value: float | list[float], dtype: object = np.float32) -> str:
        return self.constant(np.asarray(value, dtype))

    def __call__(self, op: str, *inputs: str | float, **attrs: object) -> str:
        names = [i if isinstance(i, str) else self.number(i) for i in inputs]
        return self.add(op, *names, attrs=make_attrs(op, attrs))

    def centred(self, x: str) -> str:
        return self("sub", x, self("reduce_mean", x, axes=(-1,)))

    def mean_square(self, x: str) -> str:
        return self("add", self("reduce_mean", self("mul", x, x), axes=(1,)), 1e-3)

    def cube(self, x: str) -> str:
        return self("mul", self("mul", x, x), self("mul", x, 0.044715))

    def bend(self, x: str) -> str:
        return self(
            "add", self("tanh", self("mul", sqrt(2 / pi), self("add", x, self.cube(x)))), 1.0
        )

    def expanded(self) -> str:
        return self("expand", self.input("y", tensor(F32, 1, 6)), shape=(Var("N"), 6))


Build = Callable[[Formula], str]


def _reduced(op: str) -> Build:
    return lambda g: g("reshape", g(op, g.x(), axes=(1,), keepdims=False), shape=(Var("N"), 1))


def _binary(op: str) -> Build:
    return lambda g: g(op, g.expanded(), g.x())


def _factored(g: Formula) -> str:
    x = g.x()
    inner = g("add", 1.0, g("mul", g("mul", x, x), 0.044715))
    bent = g("add", g("tanh", g("mul", g("mul", x, inner), sqrt(2 / pi))), 1.0)
    return g("mul", g("div", bent, 2.0), x)


def _erf(g: Formula) -> str:
    x = g.x()
    return g("mul", g("mul", x, 0.5), g("add", g("erf", g("div", x, sqrt(2))), 1.0))


def _softmax(g: Formula) -> str:
    x = g.x()
    e = g("exp", g("sub", x, g("reduce_max", x, axes=(1,))))
    return g("div", e, g("reduce_sum", e, axes=(1,)))


def _finite_softmax(g: Formula) -> str:
    s = g("softmax", g.x(), axis=-1)
    return g("where", g("is_nan", s), 0.0, s)


def _layer(g: Formula, x: str, *last: Callable[[str, str], str]) -> str:
    d = g.centred(x)
    variance = g("add", g("reduce_mean", g("mul", d, d), axes=(1,)), 1e-3)
    return last[0](d, variance)


SIX = [0.5, -1.5, 2.0, 1.0, 0.25, -3.0]

# Rule: its example, and how far results may differ relative to the greatest of them.
EXAMPLES: dict[str, tuple[Build, float]] = {
    "mul-one": (lambda g: g("mul", g.number([1.0] * 6), g.x()), 0),
    "div-one": (lambda g: g("div", g.x(), 1.0), 0),
    "sub-zero": (lambda g: g("sub", g.x(), 0.0), 0),
    "add-zero": (lambda g: g("add", g.x(I32), g.number(0, np.int32)), 0),
    "add-minus-zero": (lambda g: g("add", -0.0, g.x()), 0),
    "max-least": (lambda g: g("max", -np.inf, g.x()), 0),
    "min-greatest": (lambda g: g("min", g.x(), np.inf), 0),
    "neg-neg": (lambda g: g("neg", g("neg", g.x())), 0),
    "mul-minus-one": (lambda g: g("mul", g.x(), -1.0), 0),
    "add-neg": (lambda g: g("add", g("neg", g.x()), g("exp", "x")), 0),
    "sub-neg": (lambda g: g("sub", g("exp", g.x()), g("neg", "x")), 0),
    "neg-mul": (lambda g: g("mul", g("neg", g.x()), 3.0), 0),
    "sub-constant": (lambda g: g("sub", g.x(), g.number(SIX)), 0),
    "mul-mul": (lambda g: g("mul", g("mul", g.x(), g.number(SIX)), 1.7), 1e-6),
    "add-add": (lambda g: g("add", g("add", g.x(), g.number(SIX)), 1.7), 1e-6),
    "div-power-of-two": (lambda g: g("div", g.x(), g.number([8, 0.5, 1, -2, 2**14, 2**-14])), 0),
    "one-over": (lambda g: g("div", 1.0, g.x()), 0),
    "reciprocal-sqrt": (lambda g: g("reciprocal", g("sqrt", g.x())), 1e-6),
    "pow-one": (lambda g: g("pow", g.x(), 1.0), 0),
    "pow-two": (lambda g: g("pow", g.x(), 2.0), 1e-6),
    "pow-three": (lambda g: g("pow", g.x(), 3.0), 1e-6),
    "pow-minus-one": (lambda g: g("pow", g.x(), -1.0), 1e-6),
    # With one number as exponent NumPy takes the root, which of -inf is NaN.
    "pow-half": (lambda g: g("pow", g.x(), g.number([0.5] * 6)), 1e-6),
    "pow-half-mean": (lambda g: g("pow", g.mean_square(g.x()), 0.5), 1e-6),
    "pow-minus-half-mean": (lambda g: g("pow", g.mean_square(g.x()), -0.5), 1e-6),
    "not-not": (lambda g: g("not", g("not", g("is_nan", g.x()))), 0),
    "where-same": (lambda g: g("where", g("is_nan", g.x()), "x", "x"), 0),
    "where-not": (lambda g: g("where", g("not", g("is_nan", g.x())), "x", 0.0), 0),
    "cast-cast": (lambda g: g("cast", g("cast", g.x(), to=F64), to=I32), 0),
    "max-zero": (lambda g: g("max", 0.0, g.x()), 0),
    "clip-zero": (lambda g: g("clip", g.x(), 0.0), 0),
    "clip-zero-inf": (lambda g: g("clip", g.x(), 0.0, np.inf), 0),
    "relu-relu": (lambda g: g("relu", g("relu", g.x())), 0),
    "min-max": (lambda g: g("min", 2.0, g("max", g.x(), -0.5)), 0),
    "min-relu": (lambda g: g("min", g("relu", g.x()), 6.0), 0),
    "max-min": (lambda g: g("max", -1.0, g("min", g.x(), 0.5)), 0),
    "relu-clip": (lambda g: g("relu", g("clip", g.x(), -1.0, 0.5)), 0),
    "clip-relu": (lambda g: g("clip", g("relu", g.x()), -1.0, 0.5), 0),
    "clip-clip": (lambda g: g("clip", g("clip", g.x(), -1.0, 0.5), -0.25, 3.0), 0),
    "swish": (lambda g: g("mul", g("sigmoid", g.x()), "x"), 0),
    "swish-alpha": (lambda g: g("mul", g.x(), g("sigmoid", g("mul", "x", 1.702))), 0),
    "hard-swish": (
        lambda g: g("mul", g.x(), g("hard_sigmoid", "x", alpha=1 / 6, beta=0.5)),
        0,
    ),
    "mish": (lambda g: g("mul", g.x(), g("tanh", g("softplus", "x"))), 0),
    "gelu-erf": (_erf, 1e-6),
    "gelu-tanh": (lambda g: g("mul", g("mul", g.x(), 0.5), g.bend("x")), 1e-6),
    "gelu-tanh-factored": (_factored, 1e-6),
    "softmax": (_softmax, 1e-7),
    "finite-softmax": (_finite_softmax, 0),
    "reduce_max-keepdims": (_reduced("reduce_max"), 0),
    "reduce_mean-keepdims": (_reduced("reduce_mean"), 0),
    "reduce_min-keepdims": (_reduced("reduce_min"), 0),
    "reduce_prod-keepdims": (_reduced("reduce_prod"), 0),
    "reduce_sum-keepdims": (_reduced("reduce_sum"), 0),
    "mean-div": (lambda g: g("div", g("reduce_sum", g.x(), axes=(1,)), 6.0), 0),
    "mean-mul": (
        lambda g: g("mul", g("reduce_sum", g.input("y", tensor(F32, 3, 8)), axes=(1,)), 0.125),
        0,
    ),
    "layer-norm-div": (
        lambda g: _layer(g, g.x(), lambda d, v: g("div", d, g("sqrt", v))),
        1e-6,
    ),
    "layer-norm-mul": (
        lambda g: _layer(g, g.x(), lambda d, v: g("mul", g("rsqrt", v), d)),
        1e-6,
    ),
    "layer-norm-scale": (lambda g: g("mul", g("layer_norm", g.x()), g.number(SIX)), 0),
    "layer-norm-bias": (
        lambda g: g("add", g.number([SIX]), g("layer_norm", g.x(), g.number(SIX))),
        0,
    ),
    "rms-norm-div": (lambda g: g("div", g.x(), g("sqrt", g.mean_square("x"))), 1e-6),
    "rms-norm-mul": (lambda g: g("mul", g("rsqrt", g.mean_square(g.x())), "x"), 1e-6),
    "rms-norm-scale": (lambda g: g("mul", g("rms_norm", g.x()), g.number(SIX)), 0),
    **{f"{op}-expand": (_binary(op), 0) for op in ("add", "div", "max", "min", "mul", "sub")},
    "div-by-expand": (lambda g: g("div", g.x(), g.expanded()), 0),
    "sub-by-expand": (lambda g: g("sub", g.x(), g.expanded()), 0),
}


def test_every_rule_has_an_example_and_a_name():
    names = [rule.name for rule in RULES]
    assert set(names) == set(EXAMPLES)
    assert len(set(names)) == len(names)


def _inputs(graph: Graph, seed: int, special: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for v in graph.inputs:
        assert isinstance(v.type, TensorType)
        shape = [N if isinstance(d, Var) else d.value for d in v.type.shape]
        x = (rng.standard_normal(shape) * 3).astype(v.type.dtype.numpy)
        if special and v.type.dtype.is_float:
            # Rows with one special value and rows with many, beside rows of plain numbers.
            x[0, rng.integers(shape[1])] = rng.choice(SPECIAL)
            x[-1] = rng.choice(SPECIAL, shape[1])
        found[v.name] = x
    return found


# What minus infinity becomes, where the formula that is replaced gives NaN.
LIMITS = {"gelu-erf": 0.0}


def _signs(x: np.ndarray) -> np.ndarray:
    return np.signbit(x) & (x == 0)


def _compare(
    before: Graph, after: Graph, tolerance: float, exact_zeros: bool, limit: float | None = None
) -> None:
    verify_graph(after)
    check_types(after)
    for seed in range(12):
        inputs = _inputs(before, seed, special=seed >= 4)
        old = run_graph(before, inputs)[before.outputs[0]]
        new = run_graph(after, inputs)[after.outputs[0]]
        assert old.dtype == new.dtype
        if limit is not None:
            (x,) = inputs.values()
            old = np.where(np.isneginf(x), np.asarray(limit, old.dtype), old)
        if old.dtype == np.bool_ or not tolerance:
            np.testing.assert_array_equal(new, old)
        else:
            np.testing.assert_allclose(new, old, rtol=8 * tolerance, atol=tolerance)
        if exact_zeros and old.dtype.kind == "f":
            np.testing.assert_array_equal(_signs(new), _signs(old))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_each_rule_fires_and_keeps_the_numbers(rule):
    build, tolerance = EXAMPLES[rule.name]
    g = Formula("f")
    before = g.graph(build(g))
    after = dce(rewrite_graph(before, lambda g, n: rule.apply(g, n)), ON_CPU)
    assert after is not before
    assert len(after.nodes) <= len(before.nodes) or rule.name.startswith("pow")
    limit = LIMITS.get(rule.name)
    _compare(before, after, tolerance, not tolerance, limit)
    settled = dce(simplify_algebra(before, ON_CPU), ON_CPU)
    assert simplify_algebra(settled, ON_CPU) is settled
    _compare(before, settled, max(tolerance, 1e-6), False, limit)
