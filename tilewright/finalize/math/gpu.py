"""Functions on GPUs: as `finalize/math`, but powers of two and quotients of one are instructions.

The power has relative error 2**-22; where a number's exponent is split off first the instruction
sees numbers from -1 to 1 only. What is rounded to 16 bits does without that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Binary, Call, Cast, Expr, call, maximum, minimum
from tilewright.arith.walk import map_children, rewrite
from tilewright.core.dtypes import BF16, F16, F32
from tilewright.finalize.math.error_function import ERF, ERF_RANGE
from tilewright.finalize.math.expand import expand_math
from tilewright.finalize.math.exponential import EXP_RANGE, LOG2_E, exp_reduced
from tilewright.finalize.math.primitive import absolute, clamp, fma, horner2, literal, polynomial
from tilewright.finalize.math.table import EXPANSIONS, Expansion
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs

# How fast `gelu` goes to zero beyond the range of its formula, as a power of two.
GELU_TAIL_SLOPE = -64.0
# log2(2 * Phi(-a)) / a: results that f16 can hold have relative error 2**-13.6 before they are
# rounded, smaller ones of bf16 have fewer digits. From `SHORT_GELU_RANGE` on powers are zero.
GELU_F16 = (-0.000341222587, 0.00604268947, -0.0490348312, -0.462866379, -1.14994548)
SHORT_GELU_RANGE = 12.5


def exp2(x: Expr) -> Expr:
    """Two to the power of `x`."""
    return call("exp2", x)


def exp(x: Expr) -> Expr:
    """The exponential function."""
    r, s = exp_reduced(clamp(x, *EXP_RANGE[x.dtype]))
    return exp2(r * literal(LOG2_E, x.dtype)) * s * s


def exp_ftz(x: Expr) -> Expr:
    """`exp(x)` where `x` is not above zero: where the product is inexact the result is small."""
    return exp2_ftz(x * literal(LOG2_E, x.dtype))


def exp2_ftz(x: Expr) -> Expr:
    """Two to the power of `x`, zero where that is less than the least normal number."""
    return call("exp2_ftz", x)


def rcp_ftz(x: Expr) -> Expr:
    """One over `x`, zero where that is less than the least normal number."""
    return call("rcp_ftz", x)


def sigmoid(x: Expr) -> Expr:
    """`1 / (1 + exp(-x))`."""
    return rcp_ftz(exp(-x) + 1.0)


def sigmoid_f16(x: Expr) -> Expr:
    """The same to 16 bits: the power loses as many digits as `x` has before the point."""
    return rcp_ftz(exp_ftz(-x) + 1.0)


def gelu(x: Expr) -> Expr:
    """`max(x, 0) - |x| * Phi(-|x|)`, where `Phi(-a)` is `(1 - erf(a / sqrt(2))) / 2`."""
    all_of_it = absolute(x) * literal(math.sqrt(0.5), x.dtype)
    a = minimum(all_of_it, literal(ERF_RANGE[x.dtype], x.dtype))
    tail = a * horner2(a, [c * LOG2_E for c in ERF[x.dtype]])
    log = fma(a, -2 * LOG2_E / math.sqrt(math.pi), tail)
    share = exp2(fma(all_of_it - a, GELU_TAIL_SLOPE, log))
    return fma(a * share, -math.sqrt(0.5), maximum(x, -0.0))


def gelu_f16(x: Expr) -> Expr:
    """The same to 13 bits."""
    a = minimum(absolute(x), literal(SHORT_GELU_RANGE, x.dtype))
    share = exp2_ftz(a * polynomial(a, GELU_F16))
    return fma(a * share, -0.5, maximum(x, -0.0))


APPROXIMATIONS: dict[str, Expansion] = {
    "exp": exp,
    "exp2": exp2,
    "exp_ftz": exp_ftz,
    "exp_nonpositive": exp,
    "exp2_ftz": exp2_ftz,
    "rcp_ftz": rcp_ftz,
    "sigmoid": sigmoid,
    "gelu": gelu,
}
GPU_EXPANSIONS = EXPANSIONS | {
    (name, F32.name): function for name, function in APPROXIMATIONS.items()
}
# Of f32, where products with the result are rounded to 16 bits, and where it is itself.
F16_FACTORS: dict[str, Expansion] = {"sigmoid": sigmoid_f16}
F16_ACCURATE = F16_FACTORS | {"gelu": gelu_f16}


def expand_on_gpu(func: Func) -> Func:
    """`func` with every call that has an expansion expanded."""
    memo: dict[Expr, Expr] = {}
    body = map_exprs(func.body, lambda e: rewrite(e, _rounded, memo))
    return expand_math(replace(func, body=body), GPU_EXPANSIONS)


def _rounded(e: Expr) -> Expr | None:
    short = isinstance(e, Cast) and e.dtype in (F16, BF16)
    return map_children(e, lambda a: _f16_accurate(a, F16_ACCURATE)) if short else None


def _f16_accurate(e: Expr, table: Mapping[str, Expansion]) -> Expr:
    if isinstance(e, Binary) and e.op == "mul":
        return map_children(e, lambda a: _f16_accurate(a, F16_FACTORS))
    if isinstance(e, Call) and e.dtype == F32 and e.fn in table:
        return table[e.fn](*e.args)
    return e
