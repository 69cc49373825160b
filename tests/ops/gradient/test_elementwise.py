"""Gradients of elementwise operators against differences; ties, limits and integers."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph, pulled_with
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.elementwise.activation import (
    AlphaAttrs,
    GeluAttrs,
    HardSigmoidAttrs,
    SeluAttrs,
    ShrinkAttrs,
)
from tilewright.ops.elementwise.arithmetic import ModAttrs

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (3, 5))
UNIT = RNG.uniform(0.2, 0.9, (3, 5))
ROW = RNG.uniform(0.5, 2, (1, 5))

ACTIVATIONS: list[tuple[str, Attrs]] = [
    ("leaky_relu", AlphaAttrs(0.1)),
    ("elu", AlphaAttrs(1.3)),
    ("selu", SeluAttrs()),
    ("celu", AlphaAttrs(1.3)),
    ("hard_sigmoid", HardSigmoidAttrs()),
    ("gelu", GeluAttrs()),
    ("gelu", GeluAttrs(tanh=True)),
    ("swish", AlphaAttrs(1.5)),
    ("thresholded_relu", AlphaAttrs(0.5)),
    ("shrink", ShrinkAttrs(0.5, 0.1)),
]
PLAIN = ("softsign", "hard_swish", "mish", "relu", "sigmoid", "softplus", "abs", "neg", "identity")
FUNCTIONS = ("exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf")
ON_POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal", "asin", "acos", "atanh")
BINARY = ("add", "sub", "mul", "div", "min", "max")


@for_each("op, attrs", ACTIVATIONS)
def test_activations(op: str, attrs: Attrs) -> None:
    check_rule(op, X, attrs=attrs)


@for_each("op", (*PLAIN, *FUNCTIONS))
def test_functions(op: str) -> None:
    check_rule(op, X)


@for_each("op", ON_POSITIVE)
def test_functions_of_part_of_the_numbers(op: str) -> None:
    check_rule(op, UNIT)


def test_acosh() -> None:
    check_rule("acosh", UNIT + 1)


@for_each("op", BINARY)
def test_broadcasting(op: str) -> None:
    check_rule(op, X, ROW)
    check_rule(op, ROW[0], X)
    check_rule(op, np.zeros((0, 5)), ROW)


def test_power_and_remainder() -> None:
    check_rule("pow", UNIT, ROW)
    check_rule("mod", X, ROW, attrs=ModAttrs())
    check_rule("mod", X, ROW, attrs=ModAttrs(fmod=True))
    check_rule("prelu", X, ROW)


def test_powers_at_zero() -> None:
    base, exponent = np.array([0.0, 0.0, 2.0, -2.0]), np.array([2.0, 0.0, 0.0, 2.0])
    dx, dy = pulled("pow", base, exponent)
    np.testing.assert_allclose(dx, [0, 0, 0, -4])
    np.testing.assert_allclose(dy[:3], [0, 0, np.log(2)])
    assert np.isnan(dy[3])


@for_each(
    "limits",
    [
        (np.array(-0.7), np.array([1.1])),
        (None, np.array(0.3)),
        (np.array(0.3),),
        (np.array(1.0), np.array(0.5)),
        (),
    ],
)
def test_clip(limits: tuple[np.ndarray | None, ...]) -> None:
    check_rule("clip", X, *limits)


def test_choice() -> None:
    check_rule("where", X > 0, X, ROW)
    check_rule("where", ROW > 1, ROW, X)


def test_ties_share() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    for op, expected in (("max", [0.5, 0, 1]), ("min", [0.5, 1, 0])):
        da, db = pulled(op, a, b)
        np.testing.assert_array_equal(da, expected)
        np.testing.assert_array_equal(da + db, np.ones(3))


@for_each("op", ("floor", "ceil", "round", "sign"))
def test_steps_have_no_slope(op: str) -> None:
    check_rule(op, X, without=(0,))


def test_comparisons_have_no_slope() -> None:
    forward, backward = gradient_graph("less", (X, ROW), NO_ATTRS)
    assert forward.outputs
    assert not backward.outputs


def pulled(op: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The gradients of the sum, of an operator without attributes."""
    return pulled_with(op, NO_ATTRS, *arrays)
