"""Functions on GPUs: as `finalize/math`, but powers of two are one instruction.

That instruction has relative error 2**-22; where a number's exponent is split off first it sees
numbers from -1 to 1 only.
"""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, call, maximum, minimum
from tilewright.core.dtypes import F32
from tilewright.finalize.expand_math import expand_functions
from tilewright.finalize.math.error_function import ERF, ERF_RANGE
from tilewright.finalize.math.exponential import EXP_RANGE, LOG2_E, exp_reduced
from tilewright.finalize.math.primitive import absolute, clamp, fma, literal, paired
from tilewright.finalize.math.table import EXPANSIONS, Expansion
from tilewright.ir.loop.nodes import Func

# How fast `gelu` goes to zero beyond the range of its formula, as a power of two.
STEEP = -64.0


def exp2(x: Expr) -> Expr:
    """Two to the power of `x`."""
    return call("exp2", x)


def exp(x: Expr) -> Expr:
    """The exponential function."""
    r, s = exp_reduced(clamp(x, *EXP_RANGE[x.dtype]))
    return exp2(r * literal(LOG2_E, x.dtype)) * s * s


def exp_share(x: Expr) -> Expr:
    """`exp(x)` where `x` is not above zero: where the product is inexact the result is small."""
    return exp2_share(x * literal(LOG2_E, x.dtype))


def exp2_share(x: Expr) -> Expr:
    """Two to the power of `x`, zero where that is less than the least normal number."""
    return call("exp2_share", x)


def sigmoid(x: Expr) -> Expr:
    """`1 / (1 + exp(-x))`; the quotient of one is an instruction and a step after it."""
    return 1.0 / (exp(-x) + 1.0)


def gelu(x: Expr) -> Expr:
    """`max(x, 0) - |x| * Phi(-|x|)`, where `Phi(-a)` is `(1 - erf(a / sqrt(2))) / 2`."""
    all_of_it = absolute(x) * literal(math.sqrt(0.5), x.dtype)
    a = minimum(all_of_it, literal(ERF_RANGE[x.dtype], x.dtype))
    tail = a * paired(a, [c * LOG2_E for c in ERF[x.dtype]])
    log = fma(a, -2 * LOG2_E / math.sqrt(math.pi), tail)
    share = exp2(fma(all_of_it - a, STEEP, log))
    return fma(a * share, -math.sqrt(0.5), maximum(x, -0.0))


OWN: dict[str, Expansion] = {
    "exp": exp,
    "exp2": exp2,
    "exp_share": exp_share,
    "exp2_share": exp2_share,
    "sigmoid": sigmoid,
    "gelu": gelu,
}
GPU_EXPANSIONS = EXPANSIONS | {(name, F32.name): function for name, function in OWN.items()}


def expand_on_gpu(func: Func) -> Func:
    """`func` with every call that has an expansion expanded."""
    return expand_functions(func, GPU_EXPANSIONS)
