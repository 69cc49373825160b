"""Which functions are expanded, for which element type, and how."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import Expr, cast
from tilewright.core.dtypes import F32, F64, FLOATS, INTEGERS, SMALL_INTEGERS
from tilewright.finalize.math import trigonometric_double
from tilewright.finalize.math.classification import isinf, sign
from tilewright.finalize.math.error_function import erf, gelu
from tilewright.finalize.math.exponential import (
    exp,
    exp2,
    exp_ftz,
    exp_nonpositive,
    expm1,
    sigmoid,
)
from tilewright.finalize.math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from tilewright.finalize.math.inverse_trigonometric import acos, asin, atan, atan2
from tilewright.finalize.math.logarithm import log, log1p, log2
from tilewright.finalize.math.power import power, rsqrt
from tilewright.finalize.math.trigonometric import cos, sin, tan

Expansion = Callable[..., Expr]


def through_f64(expansion: Expansion) -> Expansion:
    """The f32 function computed in f64: for functions too rare to be worth their own code."""
    return lambda *args: cast(F32, expansion(*(cast(F64, a) for a in args)))


# Functions whose code serves f32 and f64.
F32_AND_F64: dict[str, Expansion] = {
    "acos": acos,
    "asin": asin,
    "atan": atan,
    "atan2": atan2,
    "erf": erf,
    "exp": exp,
    "exp2": exp2,
    "exp_ftz": exp_ftz,
    "exp_nonpositive": exp_nonpositive,
    "exp2_ftz": exp2,
    "expm1": expm1,
    "gelu": gelu,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "pow": power,
    "rcp_ftz": lambda x: 1.0 / x,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
THROUGH_F64: dict[str, Expansion] = {
    "acosh": acosh,
    "asinh": asinh,
    "atanh": atanh,
    "cosh": cosh,
    "sinh": sinh,
}
NUMBERS = (*FLOATS, *INTEGERS, *SMALL_INTEGERS)

# (function, dtype) -> expansion; f16 and floats that are only stored go through f32, except where
# they stand here.
EXPANSIONS: dict[tuple[str, str], Expansion] = {
    **{(fn, "f32"): expansion for fn, expansion in F32_AND_F64.items()},
    **{(fn, "f64"): expansion for fn, expansion in (F32_AND_F64 | THROUGH_F64).items()},
    **{(fn, "f32"): through_f64(expansion) for fn, expansion in THROUGH_F64.items()},
    ("sin", "f32"): sin,
    ("cos", "f32"): cos,
    ("tan", "f32"): tan,
    ("sin", "f64"): trigonometric_double.sin,
    ("cos", "f64"): trigonometric_double.cos,
    ("tan", "f64"): trigonometric_double.tan,
    **{("isinf", d.name): isinf for d in FLOATS},
    **{("sign", d.name): sign for d in NUMBERS},
}
