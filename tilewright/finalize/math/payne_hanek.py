"""The angle of huge f64 numbers in quarter turns, after Payne and Hanek.

The number is an integer `m` times `2**e`. Of the binary digits of 2/pi those before position `e`
give whole turns only; the next 192, multiplied by `m`, hold the angle. There is no table in memory:
the four words that contain them are picked from literals, a `select` a word and bit of the index.
"""

from __future__ import annotations

from tilewright.arith.expr import Bitcast, Const, Expr, binary, cast, const, select
from tilewright.core.dtypes import F64, I64, U64
from tilewright.finalize.math.primitive import clamp, fma, times

# The digits of 2/pi after nine zeros.
WORDS = (
    0x00517CC1B727220A,
    0x94FE13ABE8FA9A6E,
    0xE06DB14ACC9E21C8,
    0x20FF28B1D5EF5DE2,
    0xB0DB92371D2126E9,
    0x700324977504E8C9,
    0x0E7F0EF58E5894D3,
    0x9F74411AFA975DA2,
    0x4274CE38135A2FBF,
    0x209CC8EB1CC1A99C,
    0xFA4E422FC5DEFC94,
    0x1D8FFC4BFFEF02CC,
    0x07F79788C5AD0536,
    0x8FB69B3F6793E584,
    0xDBA7A31FB34F2FF5,
    0x16BA93DD63F5F2F8,
    0xBD9E839CFBC52949,
    0x7535FDAFD88FC6AE,
    0x842B0198237E3DB5,
)
# The reduction is right from here on.
SMALLEST = 2.0**45

_LOW = 0xFFFFFFFF
_MANTISSA = 52
_FIRST_EXPONENT = 1023 + 45  # of `SMALLEST`, for which the digits start at the first word


def _picked(index: Expr) -> list[Expr]:
    """Four words from `index` on."""
    words: list[Expr] = [Const(w, U64) for w in WORDS]
    for bit in (8, 4, 2, 1):
        upper = binary("and", index, bit).ne(0)
        words = [select(upper, words[k + bit], words[k]) for k in range(bit + 3)]
    return words


def _window(position: Expr) -> list[Expr]:
    """Three words: 192 digits from bit `position` on."""
    words = _picked(position >> 6)
    left = binary("and", position, 63)
    right = const(63, U64) - left
    return [(words[k] << left) | ((words[k + 1] >> 1) >> right) for k in range(3)]


def _high_product(a: Expr, b: Expr) -> Expr:
    """The high word of the product of `a < 2**53` and `b`."""
    a0, a1, b0, b1 = a & _LOW, a >> 32, b & _LOW, b >> 32
    middle = a1 * b0 + ((a0 * b0) >> 32)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def _fraction(product: Expr, below: Expr) -> tuple[Expr, Expr]:
    """The signed number `product * 2**-62 + below * 2**-126` as a float and its error."""

    def scaled(word: Expr, exponent: int) -> Expr:
        return times(cast(F64, Bitcast(I64, word)), 2.0**exponent)

    signed = Bitcast(I64, product)
    large = times(cast(F64, signed >> 32), 2.0**-30)
    small = scaled(product & _LOW, -62)
    total = large + small
    tail = fma(cast(F64, Bitcast(I64, below & _LOW)), 2.0**-126, scaled(below >> 32, -94))
    rest = ((large - total) + small) + tail
    high = total + rest
    return high, (total - high) + rest


def huge_quarter_turns(a: Expr) -> tuple[Expr, Expr, Expr]:
    """`q`, `d` and its error with `a = (q + d) * pi / 2` modulo whole turns, for large `a`."""
    bits = Bitcast(U64, clamp(a, SMALLEST, float.fromhex("0x1.fffffffffffffp1023")))
    position = (bits >> _MANTISSA) - _FIRST_EXPONENT
    m = (bits & ((1 << _MANTISSA) - 1)) | (1 << _MANTISSA)
    first, second, third = _window(position)
    middle = m * second
    below = middle + _high_product(m, third)
    carry = select(below < middle, const(1, U64), const(0, U64))
    product = m * first + _high_product(m, second) + carry
    q = (product + (1 << 61)) >> 62
    return Bitcast(I64, q), *_fraction(product - (q << 62), below)
