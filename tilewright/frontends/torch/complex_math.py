"""Functions of complex numbers as formulas of real and imaginary parts.

Where the textbook's formula cancels, Kahan's is taken ("Branch cuts for complex elementary
functions", 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.core.dtypes import F64
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.traced_value import TracedValue, where

Real = TracedValue[GraphBuilder]


@dataclass(frozen=True)
class Complex:
    """Two real values of one graph, with the arithmetic of complex numbers."""

    re: Real
    im: Real

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __mul__(self, other: Complex) -> Complex:
        a, b, c, d = self.re, self.im, other.re, other.im
        return Complex(a * c - b * d, a * d + b * c)

    def __truediv__(self, other: Complex) -> Complex:
        """Both are divided by the greater part of the divisor, whose square may be too great."""
        greatest = other.re.apply("abs").apply("max", other.im.apply("abs"))
        c, d = other.re / greatest, other.im / greatest
        a, b, square = self.re / greatest, self.im / greatest, c * c + d * d
        return Complex((a * c + b * d) / square, (b * c - a * d) / square)

    def scaled(self, by: Real | float) -> Complex:
        """Times a real number."""
        return Complex(self.re * by, self.im * by)

    def number(self, value: complex) -> Complex:
        """A constant of the same type."""
        return Complex(self.re.number(value.real), self.re.number(value.imag))

    def shifted(self, by: float) -> Complex:
        """A real number added: a zero as imaginary part keeps its sign."""
        return Complex(self.re + by, self.im)

    @property
    def conj(self) -> Complex:
        """The complex conjugate."""
        return Complex(self.re, -self.im)

    @property
    def times_i(self) -> Complex:
        """A quarter turn."""
        return Complex(-self.im, self.re)

    @property
    def is_nonzero(self) -> Real:
        """Whether either part is other than 0."""
        zero = self.re.number(0)
        parts = (x.apply("equal", zero).apply("not") for x in (self.re, self.im))
        return next(parts).apply("or", next(parts))


def magnitude(z: Complex) -> Real:
    """`max * sqrt(1 + (min / max) ** 2)`, which does not overflow; infinite if either part is."""
    a, b = z.re.apply("abs"), z.im.apply("abs")
    greatest, least = a.apply("max", b), a.apply("min", b)
    ratio = least / greatest
    found = greatest * (ratio * ratio + 1).apply("sqrt")
    found = where(greatest.apply("equal", 0), greatest, found)
    infinity = z.re.number(math.inf)
    is_infinite = a.apply("equal", infinity).apply("or", b.apply("equal", infinity))
    return where(is_infinite, infinity, found)


def angle(y: Real, x: Real) -> Real:
    """The angle of the point (x, y); a negative zero counts as below the axis, as in IEEE 754."""
    zero = x.number(0)
    is_left = x.apply("less", zero).apply("or", _is_negative_zero(x))
    is_below = y.apply("less", zero).apply("or", _is_negative_zero(y))
    a, b = y.apply("abs"), x.apply("abs")
    steep = b.apply("less", a)
    ratio = where(steep, b, a) / where(steep, a, b)
    ratio = where(a.apply("equal", b), where(a.apply("equal", zero), zero, x.number(1)), ratio)
    first = ratio.apply("atan")
    first = where(steep, math.pi / 2 - first, first)
    upper = where(is_left, math.pi - first, first)
    found = where(is_below, -upper, upper)
    return where(x.apply("is_nan"), x, where(y.apply("is_nan"), y, found))


def _is_negative_zero(x: Real) -> Real:
    return x.apply("equal", 0).apply("and", (x.number(1) / x).apply("less", 0))


def exp(z: Complex) -> Complex:
    """A real number has a real power, also where it is infinite."""
    size = z.re.apply("exp")
    im = where(z.im.apply("equal", 0), z.im, size * z.im.apply("sin"))
    return Complex(size * z.im.apply("cos"), im)


def log(z: Complex) -> Complex:
    """The principal branch."""
    return Complex(magnitude(z).apply("log"), angle(z.im, z.re))


def sqrt(z: Complex) -> Complex:
    """The root in the right half of the plane."""
    half = ((magnitude(z) + z.re.apply("abs")) * 0.5).apply("sqrt")
    zero = half.number(0)
    other = where(half.apply("equal", zero), zero, z.im.apply("abs") / (half * 2))
    is_left = z.re.apply("less", zero)
    re, im = where(is_left, other, half), where(is_left, half, other)
    is_below = z.im.apply("less", zero).apply("or", _is_negative_zero(z.im))
    return Complex(re, where(is_below, -im, im))


def power(z: Complex, w: Complex) -> Complex:
    """`exp(w log z)`; 1 where w is 0, and 0 where z is."""
    found = exp(w * log(z))
    zero, one = z.number(0), z.number(1)
    found = chosen(z.is_nonzero, found, zero)
    return chosen(w.is_nonzero, found, one)


def chosen(condition: Real, yes: Complex, no: Complex) -> Complex:
    """`yes` where the condition holds, else `no`."""
    return Complex(where(condition, yes.re, no.re), where(condition, yes.im, no.im))


def sinh(z: Complex) -> Complex:
    """By the functions of both parts."""
    sin, cos = z.im.apply("sin"), z.im.apply("cos")
    return Complex(z.re.apply("sinh") * cos, z.re.apply("cosh") * sin)


def cosh(z: Complex) -> Complex:
    """By the functions of both parts."""
    sin, cos = z.im.apply("sin"), z.im.apply("cos")
    return Complex(z.re.apply("cosh") * cos, z.re.apply("sinh") * sin)


def tanh(z: Complex) -> Complex:
    """With `sinh(re)` and `tan(im)`; far out, where the square of the first overflows, by `exp`."""
    t, s = z.im.apply("tan"), z.re.apply("sinh")
    beta, square = t * t + 1, s * s
    below = beta * square + 1
    near = Complex(beta * (square + 1).apply("sqrt") * s / below, t / below)
    size = z.re.apply("abs")
    ripple = z.im.apply("sin") * z.im.apply("cos") * (size * -2).apply("exp") * 4
    far = Complex(z.re.apply("sign"), ripple)
    return chosen(size.apply("greater", 22.0 if z.re.dtype == F64 else 11.0), far, near)


def asin(z: Complex) -> Complex:
    """With the roots of `1 - z` and `1 + z`."""
    a, b = sqrt((-z).shifted(1)), sqrt(z.shifted(1))
    return Complex(angle(z.re, (a * b).re), (a.conj * b).im.apply("asinh"))


def acos(z: Complex) -> Complex:
    """With the roots of `1 - z` and `1 + z`."""
    a, b = sqrt((-z).shifted(1)), sqrt(z.shifted(1))
    return Complex(angle(a.re, b.re) * 2, (b.conj * a).im.apply("asinh"))


def acosh(z: Complex) -> Complex:
    """With the roots of `z - 1` and `z + 1`."""
    a, b = sqrt(z.shifted(-1)), sqrt(z.shifted(1))
    return Complex((a.conj * b).re.apply("asinh"), angle(a.im, b.re) * 2)


def atanh(z: Complex) -> Complex:
    """Half of the logarithm of `(1 + z) / (1 - z)`."""
    x, y, square = z.re, z.im, z.im * z.im
    re = _log1p(x * 4 / ((1 - x) * (1 - x) + square)) * 0.25
    return Complex(re, angle(y * 2, (1 - x) * (x + 1) - square) * 0.5)


def _log1p(x: Real) -> Real:
    """`x * log(u) / (u - 1)` with `u = 1 + x`: the rounding of `u` cancels (Kahan)."""
    u = x + 1
    infinity = x.number(math.inf)
    found = where(u.apply("equal", infinity), u, x * u.apply("log") / (u - 1))
    return where(u.apply("equal", 1), x, found)


def log1p(z: Complex) -> Complex:
    """`log(1 + z)`, whose real part is half of `log1p(re * (2 + re) + im ** 2)`."""
    re = _log1p(z.re * (z.re + 2) + z.im * z.im) * 0.5
    return Complex(re, angle(z.im, z.re + 1))


def sigmoid(z: Complex) -> Complex:
    """`1 / (1 + exp(-z))`."""
    return z.number(1) / exp(-z).shifted(1)


def direction(z: Complex) -> Complex:
    """`z / |z|`, 0 at 0."""
    size = magnitude(z)
    return chosen(z.is_nonzero, Complex(z.re / size, z.im / size), z)


def turned(function: Callable[[Complex], Complex]) -> Callable[[Complex], Complex]:
    """`f(z) = -i g(i z)`: sine and tangent and their inverses by those of the hyperbola."""
    return lambda z: -function(z.times_i).times_i


FUNCTIONS: dict[str, Callable[[Complex], Complex]] = {
    "neg": lambda z: -z,
    "_conj": lambda z: z.conj,
    "conj_physical": lambda z: z.conj,
    "_conj_physical": lambda z: z.conj,
    "exp": exp,
    "exp2": lambda z: exp(z.scaled(math.log(2))),
    "expm1": lambda z: exp(z).shifted(-1),
    "log": log,
    "log2": lambda z: log(z).scaled(1 / math.log(2)),
    "log10": lambda z: log(z).scaled(1 / math.log(10)),
    "log1p": log1p,
    "sqrt": sqrt,
    "rsqrt": lambda z: z.number(1) / sqrt(z),
    "reciprocal": lambda z: z.number(1) / z,
    "square": lambda z: z * z,
    "sin": turned(sinh),
    "cos": lambda z: cosh(z.times_i),
    "tan": turned(tanh),
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "asin": asin,
    "acos": acos,
    "atan": turned(atanh),
    "asinh": turned(asin),
    "acosh": acosh,
    "atanh": atanh,
    "sigmoid": sigmoid,
    "silu": lambda z: z * sigmoid(z),
    "sgn": direction,
}
