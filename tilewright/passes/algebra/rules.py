"""The algebraic rules over graph operators: one line a rule, in the order in which they are tried.

A rule either gives exactly the same numbers, or differs by the rounding of constants that are
brought together (`(x * c) * d` becomes `x * (c * d)`) or of the operator that a whole formula is
recognized as. Infinities, NaN and the sign of zero stay: `x + 0` is not `x` where `x` is -0.

Every rule leaves fewer operators, or as many that cost less, so rewriting ends.
"""

from __future__ import annotations

from math import pi, sqrt

from tilewright.ops.elementwise.activation import AlphaAttrs, GeluAttrs
from tilewright.ops.elementwise.define import anything, bools, integers, numbers
from tilewright.passes.algebra.conditions import (
    above_zero,
    alpha_of,
    axis_of,
    counts,
    finite_of,
    fits,
    fits_plain,
    halves,
    interval,
    keepdims_of,
    keeps_rank,
    layer_of,
    multiplies,
    norm_rows,
    one_axis,
    overlap,
    positive,
    powers_of_two,
    rms_of,
    scalar,
    sixth,
    square_rows,
    sums,
    widens,
)
from tilewright.passes.algebra.patterns import (
    GraphPattern,
    NamedPattern,
    OpPattern,
    apply,
    const,
    product,
    wild,
)
from tilewright.passes.algebra.patterns import GraphRule as Rule

x, y, z = wild("x y z")
c, d, e, f = const("c d e f")
INF = float("inf")


def _root(value: GraphPattern) -> OpPattern:
    return apply("sqrt", value)


def _mean(value: GraphPattern, attrs: str) -> OpPattern:
    return apply("reduce_mean", value, attrs=attrs)


def _clip(value: GraphPattern, low: GraphPattern | float, high: GraphPattern | float) -> OpPattern:
    return apply("clip", value, low, high)


ARITHMETIC = (
    Rule("mul-one", x * 1.0, x, domain=numbers),
    Rule("div-one", x / 1.0, x, domain=numbers),
    Rule("sub-zero", x - 0.0, x, domain=numbers),
    Rule("add-zero", x + 0.0, x, domain=integers),
    Rule("add-minus-zero", x + -0.0, x),
    Rule("max-least", apply("max", x, -INF), x),
    Rule("min-greatest", apply("min", x, INF), x),
    Rule("neg-neg", apply("neg", -x), x, domain=numbers),
    Rule("mul-minus-one", x * -1.0, -x),
    Rule("add-neg", x + -y, x - y, domain=numbers),
    Rule("sub-neg", x - -y, x + y, domain=numbers),
    Rule("neg-mul", -x * c, x * -c),
    Rule("sub-constant", x - c, x + -c),
    Rule("mul-mul", (x * c) * d, x * (c * d), multiplies, numbers),
    Rule("add-add", (x + c) + d, x + (c + d), sums, numbers),
    Rule("div-power-of-two", x / c, x * (1.0 / c), powers_of_two),
    Rule("one-over", 1.0 / x, apply("reciprocal", x)),
    Rule("reciprocal-sqrt", apply("reciprocal", _root(x)), apply("rsqrt", x)),
)

_MEAN_SQUARE = NamedPattern("y", _mean(x * x, "a") + c)
POWERS = (
    Rule("pow-one", apply("pow", x, 1.0), x),
    Rule("pow-two", apply("pow", x, 2.0), x * x),
    Rule("pow-three", apply("pow", x, 3.0), x * x * x),
    Rule("pow-minus-one", apply("pow", x, -1.0), apply("reciprocal", x)),
    Rule("pow-half-mean", apply("pow", _MEAN_SQUARE, 0.5), _root(y), positive),
    Rule("pow-minus-half-mean", apply("pow", _MEAN_SQUARE, -0.5), apply("rsqrt", y), positive),
    # The power of -0 is 0, and that of -inf is inf.
    Rule(
        "pow-half",
        apply("pow", x, 0.5),
        apply("where", apply("equal", x, -INF), INF, _root(x + 0.0)),
    ),
)

CHOICES = (
    Rule("not-not", apply("not", apply("not", x)), x, domain=bools),
    Rule("where-same", apply("where", z, x, x), x, domain=anything),
    Rule(
        "where-not", apply("where", apply("not", z), x, y), apply("where", z, y, x), None, anything
    ),
    Rule(
        "cast-cast",
        apply("cast", apply("cast", x, attrs="a"), attrs="b"),
        apply("cast", x, attrs="b"),
        widens,
        anything,
    ),
)

CLIPPING = (
    Rule("max-zero", apply("max", x, 0.0), apply("relu", x), domain=numbers),
    Rule("clip-zero", apply("clip", x, 0.0), apply("relu", x), domain=numbers),
    Rule("clip-zero-inf", _clip(x, 0.0, INF), apply("relu", x)),
    Rule("relu-relu", apply("relu", apply("relu", x)), apply("relu", x), domain=numbers),
    Rule("min-max", apply("min", apply("max", x, c), d), _clip(x, c, d), interval, numbers),
    Rule("min-relu", apply("min", apply("relu", x), d), _clip(x, 0.0, d), above_zero, numbers),
    Rule("max-min", apply("max", apply("min", x, d), c), _clip(x, c, d), interval, numbers),
    Rule("relu-clip", apply("relu", _clip(x, c, d)), _clip(x, apply("max", c, 0.0), d), above_zero),
    Rule("clip-relu", _clip(apply("relu", x), c, d), _clip(x, apply("max", c, 0.0), d), above_zero),
    Rule(
        "clip-clip",
        _clip(_clip(x, c, d), e, f),
        _clip(x, apply("max", c, e), apply("min", d, f)),
        overlap,
        numbers,
    ),
)

_ERF = 1.0 + apply("erf", product(sqrt(1 / 2), x))
_CUBE = x + product(0.044715, x, x, x)
_FACTORED = 1.0 + product(0.044715, x, x)
_TANH = 1.0 + apply("tanh", product(sqrt(2 / pi), _CUBE))
_TANH_FACTORED = 1.0 + apply("tanh", product(sqrt(2 / pi), x, _FACTORED))
_TANH_GELU = apply("gelu", x, attrs=GeluAttrs(tanh=True))
ACTIVATIONS = (
    Rule("swish", x * apply("sigmoid", x), apply("swish", x, attrs=AlphaAttrs(1.0))),
    Rule("swish-alpha", x * apply("sigmoid", x * c), apply("swish", x, attrs=alpha_of), scalar),
    Rule("hard-swish", x * apply("hard_sigmoid", x, attrs="a"), apply("hard_swish", x), sixth),
    Rule("mish", x * apply("tanh", apply("softplus", x)), apply("mish", x)),
    Rule("gelu-erf", product(0.5, x, _ERF), apply("gelu", x, attrs=GeluAttrs())),
    Rule("gelu-tanh", product(0.5, x, _TANH), _TANH_GELU),
    Rule("gelu-tanh-factored", product(0.5, x, _TANH_FACTORED), _TANH_GELU),
)

_EXP = apply("exp", x - apply("reduce_max", x, attrs="a"))
_SOFTMAX = apply("softmax", x, attrs="a")
SOFTMAX = (
    Rule(
        "softmax",
        _EXP / apply("reduce_sum", _EXP, attrs="b"),
        apply("softmax", x, attrs=axis_of),
        one_axis,
    ),
    Rule(
        "finite-softmax",
        apply("where", apply("is_nan", _SOFTMAX), 0.0, _SOFTMAX),
        apply("softmax", x, attrs=finite_of),
    ),
)

_REDUCTIONS = ("reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum")
_SUM = apply("reduce_sum", x, attrs="a")
REDUCTIONS = (
    *(
        Rule(
            f"{op}-keepdims",
            apply("reshape", apply(op, x, attrs="a"), attrs="b"),
            apply(op, x, attrs=keepdims_of),
            keeps_rank,
            numbers,
        )
        for op in _REDUCTIONS
    ),
    Rule("mean-div", _SUM / c, _mean(x, "a"), counts),
    Rule("mean-mul", _SUM * c, _mean(x, "a"), halves),
)

_CENTRED = x - _mean(x, "a")
_VARIANCE = _mean(_CENTRED * _CENTRED, "b")
_SQUARES = _mean(x * x, "a")
_LAYER = apply("layer_norm", x, attrs=layer_of)
_RMS = apply("rms_norm", x, attrs=rms_of)
NORMS = (
    Rule("layer-norm-div", _CENTRED / _root(_VARIANCE + e), _LAYER, norm_rows),
    Rule("layer-norm-mul", _CENTRED * apply("rsqrt", _VARIANCE + e), _LAYER, norm_rows),
    Rule(
        "layer-norm-scale",
        apply("layer_norm", x, attrs="a") * c,
        apply("layer_norm", x, c, attrs="a"),
        fits_plain,
    ),
    Rule(
        "layer-norm-bias",
        apply("layer_norm", x, y, attrs="a") + c,
        apply("layer_norm", x, y, c, attrs="a"),
        fits_plain,
    ),
    Rule("rms-norm-div", x / _root(_SQUARES + e), _RMS, square_rows),
    Rule("rms-norm-mul", x * apply("rsqrt", _SQUARES + e), _RMS, square_rows),
    Rule(
        "rms-norm-scale",
        apply("rms_norm", x, attrs="a") * c,
        apply("rms_norm", x, c, attrs="a"),
        fits,
    ),
)

_EXPANDED = apply("expand", x, attrs="a")
EXPANSIONS = (
    *(
        Rule(f"{op}-expand", apply(op, _EXPANDED, y), apply(op, x, y), domain=numbers)
        for op in ("add", "div", "max", "min", "mul", "sub")
    ),
    *(
        Rule(f"{op}-by-expand", apply(op, y, _EXPANDED), apply(op, y, x), domain=numbers)
        for op in ("div", "sub")
    ),
)

# What a whole formula is recognized as comes first, before its parts are brought together.
RULES = (
    *ACTIVATIONS,
    *SOFTMAX,
    *NORMS,
    *REDUCTIONS,
    *POWERS,
    *CHOICES,
    *CLIPPING,
    *ARITHMETIC,
    *EXPANSIONS,
)
