from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import check
from tests.finalize.math.jit_expression import jit
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F64
from tilewright.finalize.math.payne_hanek import WORDS, huge_quarter_turns

# The double closest to a multiple of pi / 2, relative to its size: its rest is below 2**-60.
CLOSEST = 6381956970095103.0 * 2.0**797


def scaled_arccot(n: int, scale: int) -> int:
    term = total = scale // n
    k, sign = 1, 1
    while term:
        term //= n * n
        k, sign = k + 2, -sign
        total += sign * (term // k)
    return total


def test_words_are_the_digits_of_two_over_pi() -> None:
    digits = sum(word << (64 * k) for k, word in enumerate(reversed(WORDS)))
    fraction_bits = 64 * len(WORDS) - 9
    scale = 1 << (fraction_bits + 100)
    pi = 4 * (4 * scaled_arccot(5, scale) - scaled_arccot(239, scale))
    assert digits == (2 * scale << fraction_bits) // pi


def test_quarter_turns_of_powers_of_two() -> None:
    a = 2.0 ** np.arange(45, 1024)
    q, d, _ = (jit(part, [("a", F64)])(a) for part in huge_quarter_turns(Var("a", F64)))
    assert (np.abs(d) <= 0.5).all()
    # `longdouble` has too few digits for the angle itself, but not for its sine.
    turn = (q % 4 + d) * (np.pi / 2)
    sine = np.sin(a.astype(np.longdouble)).astype(np.float64)
    np.testing.assert_allclose(np.sin(turn), sine, atol=1e-14)


def test_argument_closest_to_a_multiple_of_a_quarter_turn() -> None:
    a = np.array([CLOSEST])
    rest = jit(huge_quarter_turns(Var("a", F64))[1], [("a", F64)])(a)
    assert 0 < abs(rest[0]) < 2.0**-59
    check("cos", F64, np.cos, 4.0, a)
    check("sin", F64, np.sin, 4.0, a)
