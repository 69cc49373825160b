"""The discrete Fourier transform, by matrix products.

    y[k] = sum(n) x[n] exp(-2 pi i n k / N)

A short transform is one product with the matrix of these factors. Of a length N = A * B it is B
transforms of length A, twiddle factors, and A transforms of length B (Cooley and Tukey); of a
length without divisors it is a convolution, hence two transforms of a length with many (Bluestein).
The cheapest plan is found by counting multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isqrt

import numpy as np

from tilewright.arith.expr import Expr, as_expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import GraphOps, Op, fail, normalize_axis
from tilewright.ops.tensor.manipulation import ReshapeAttrs, ReverseAttrs, TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs

# What moving and scaling all elements once costs, in multiplications an element.
PASS = 32


@node
class DftAttrs(Attrs):
    """The axis and the length of the transform, to which the input is cut or filled with zeros.

    With `onesided` half of a spectrum that is symmetric is left out: of the result, or with
    `inverse` of the input, and the result is real.
    """

    axis: int
    length: int
    inverse: bool = False
    onesided: bool = False

    @property
    def half(self) -> int:
        """The number of elements in one side of a spectrum."""
        return self.length // 2 + 1


def _type(attrs: DftAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if x.rank < 2 or not x.dtype.is_float or as_int(x.shape[-1]) not in (1, 2):
        raise fail("dft", f"{x} does not end in real and imaginary parts")
    axis = normalize_axis("dft", attrs.axis, x.rank)
    if axis == x.rank - 1 or attrs.length < 1:
        raise fail("dft", f"a transform of length {attrs.length} along axis {axis} of {x}")
    bins = attrs.half if attrs.onesided and not attrs.inverse else attrs.length
    parts = 1 if attrs.onesided and attrs.inverse else 2
    shape = (*x.shape[:axis], const(bins), *x.shape[axis + 1 : -1], const(parts))
    return TensorType(x.dtype, shape)


@node
class Plan:
    """How a length is transformed: at once, as `a * b`, or as a convolution of length `a`."""

    cost: int
    kind: str = "matrix"
    a: int = 0
    b: int = 0


@cache
def plan(n: int) -> Plan:
    """The cheapest way to transform `n` elements."""
    choices = [Plan(4 * n * n)]
    for a in range(2, isqrt(n) + 1):
        if n % a == 0:
            cost = (n // a) * plan(a).cost + a * plan(n // a).cost + 4 * PASS * n
            choices.append(Plan(cost, "split", a, n // a))
    if n & (n - 1):
        longer = 1 << (2 * n - 2).bit_length()
        choices.append(Plan(2 * plan(longer).cost + 6 * PASS * longer, "convolution", longer))
    return min(choices, key=lambda p: p.cost)


@node
class _Graph:
    """Operators on rows of complex numbers `[rows, n, parts]`, added to a graph."""

    g: GraphOps
    real: DType

    def parts(self, x: str) -> int:
        """1 for real numbers, 2 for complex ones."""
        return as_int(self.g.type(x).shape[-1]) or 0

    def reshape(self, x: str, *shape: Expr | int) -> str:
        """`x` under another shape."""
        dims = tuple(simplify(as_expr(d)) for d in shape)
        return self.g.add("reshape", x, attrs=ReshapeAttrs(dims))

    def swap(self, x: str) -> str:
        """The two middle dimensions of four exchanged."""
        return self.g.add("transpose", x, attrs=TransposeAttrs((0, 2, 1, 3)))

    def constant(self, data: np.ndarray) -> str:
        """A constant in the type of the computation."""
        return self.g.constant(np.ascontiguousarray(data, self.real.numpy))

    def cut(self, x: str, count: int, parts: int = 2) -> str:
        """The first elements of each row and their first parts."""
        shape = self.g.type(x).shape
        stops = (shape[0], const(count), const(parts))
        if stops == shape:
            return x
        zeros = (const(0),) * 3
        return self.g.add("slice", x, attrs=SliceAttrs(zeros, stops, (1, 1, 1), inside=True))

    def pad(self, x: str, count: int) -> str:
        """Each row with zeros up to `count` elements."""
        zero, size = const(0), self.g.type(x).shape[1]
        after = (zero, simplify(const(count) - size), zero)
        return self.g.add("pad", x, attrs=PadAttrs((zero,) * 3, after))

    def times(self, x: str, factors: np.ndarray) -> str:
        """Each row times complex factors: one an element of the dimensions behind the first."""
        c, s = factors.real, factors.imag
        if self.parts(x) == 1:
            return self.g.add("mul", x, self.constant(np.stack([c, s], -1)))
        last = ReverseAttrs((self.g.type(x).rank - 1,))
        swapped = self.g.add("reverse", x, attrs=last)
        by_real = self.g.add("mul", x, self.constant(np.stack([c, c], -1)))
        by_imaginary = self.g.add("mul", swapped, self.constant(np.stack([-s, s], -1)))
        return self.g.add("add", by_real, by_imaginary)

    def matrix(self, x: str, n: int, sign: int, bins: int, parts: int = 2) -> str:
        """The transform as one product; `bins` and `parts` say how much of it is wanted."""
        rows, given = self.g.type(x).shape[0], self.parts(x)
        w = _root(np.outer(np.arange(n), np.arange(bins)), n, sign)
        both = np.stack([np.stack([w.real, w.imag], -1), np.stack([-w.imag, w.real], -1)], 1)
        factors = both[:, :given, :, :parts].reshape(n * given, bins * parts)
        flat = self.g.add("matmul", self.reshape(x, rows, n * given), self.constant(factors))
        return self.reshape(flat, rows, bins, parts)

    def split(self, x: str, a: int, b: int, sign: int) -> str:
        """The transform of `a * b` elements by shorter ones."""
        rows, given = self.g.type(x).shape[0], self.parts(x)
        columns = self.swap(self.reshape(x, rows, a, b, given))
        first = self.transform(self.reshape(columns, rows * b, a, given), a, sign)
        twiddles = _root(np.outer(np.arange(b), np.arange(a)), a * b, sign)
        twiddled = self.times(self.reshape(first, rows, b, a, 2), twiddles)
        second = self.transform(self.reshape(self.swap(twiddled), rows * a, b, 2), b, sign)
        return self.reshape(self.swap(self.reshape(second, rows, a, b, 2)), rows, a * b, 2)

    def convolution(self, x: str, n: int, longer: int, sign: int) -> str:
        """The transform of `n` elements as a convolution with a chirp."""
        squares = np.arange(n, dtype=np.int64) ** 2
        chirp = _root(squares, 2 * n, sign)
        filter = np.zeros(longer, complex)
        filter[:n] = chirp.conj()
        filter[longer - n + 1 :] = chirp[:0:-1].conj()
        spectrum = self.transform(self.pad(self.times(x, chirp), longer), longer, -1)
        joined = self.times(spectrum, np.fft.fft(filter) / longer)
        return self.times(self.cut(self.transform(joined, longer, 1), n), chirp)

    def transform(self, x: str, n: int, sign: int) -> str:
        """The transform of each row, `sign` -1 forward and 1 backward, not scaled."""
        chosen = plan(n)
        if chosen.kind == "split":
            return self.split(x, chosen.a, chosen.b, sign)
        if chosen.kind == "convolution":
            return self.convolution(x, n, chosen.a, sign)
        return self.matrix(x, n, sign, n)

    def whole(self, x: str, n: int) -> str:
        """A symmetric spectrum from one side of it."""
        zero, one = const(0), const(1)
        rows, _, parts = self.g.type(x).shape
        other = n - n // 2  # elements 1 to other - 1 appear again
        if other <= 1:
            return x
        attrs = SliceAttrs((zero, one, zero), (rows, const(other), parts), (1, 1, 1), inside=True)
        mirrored = self.g.add("slice", x, attrs=attrs)
        mirrored = self.g.add("reverse", mirrored, attrs=ReverseAttrs((1,)))
        if parts is not one:
            mirrored = self.g.add("mul", mirrored, self.constant(np.array([1, -1])))
        return self.g.add("concat", x, mirrored, attrs=ConcatAttrs(1))


def _root(exponent: np.ndarray, n: int, sign: int) -> np.ndarray:
    """Roots of unity `exp(sign 2 pi i exponent / n)`, exact where they are 1, -1, i and -i."""
    turns = exponent % n
    found = np.exp(sign * 2j * np.pi * turns / n)
    for quarter, value in enumerate((1, sign * 1j, -1, -sign * 1j)):
        found[turns * 4 == quarter * n] = value
    return found


def _dft(g: GraphOps, attrs: DftAttrs, inputs: Sequence[str]) -> str:
    x = g.type(inputs[0])
    real = accumulator(x.dtype)
    axis = normalize_axis("dft", attrs.axis, x.rank)
    outer = [a for a in range(x.rank - 1) if a != axis]
    perm = (*outer, axis, x.rank - 1)
    rows = product(tuple(x.shape[a] for a in outer))
    ops = _Graph(g, real)
    y = g.add("cast", inputs[0], attrs=CastAttrs(real)) if real != x.dtype else inputs[0]
    if axis != x.rank - 2:
        y = g.add("transpose", y, attrs=TransposeAttrs(perm))
    y = _transformed(ops, attrs, ops.reshape(y, rows, x.shape[axis], x.shape[-1]))
    y = ops.reshape(y, *(x.shape[a] for a in outer), *g.type(y).shape[1:])
    if axis != x.rank - 2:
        back = tuple(int(a) for a in np.argsort(perm))
        y = g.add("transpose", y, attrs=TransposeAttrs(back))
    return g.add("cast", y, attrs=CastAttrs(x.dtype)) if real != x.dtype else y


def _transformed(ops: _Graph, attrs: DftAttrs, x: str) -> str:
    """The transform of rows `[rows, size, parts]`, cut to what is wanted and scaled."""
    n, sign = attrs.length, 1 if attrs.inverse else -1
    backward = attrs.inverse and attrs.onesided
    x = ops.pad(x, attrs.half if backward else n)
    bins = attrs.half if attrs.onesided and not attrs.inverse else n
    parts = 1 if backward else 2
    if backward:
        x = ops.whole(x, n)
    if plan(n).kind == "matrix":
        y = ops.matrix(x, n, sign, bins, parts)
    else:
        y = ops.cut(ops.transform(x, n, sign), bins, parts)
    return ops.g.add("mul", y, ops.constant(np.array(1 / n))) if attrs.inverse else y


def _flops(attrs: DftAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * const(max(plan(attrs.length).cost // attrs.length, 1))


OPS = (
    Op(
        "dft",
        _type,
        "out_fusable",
        DftAttrs,
        decompose=_dft,
        flops=_flops,
        doc="The discrete Fourier transform along an axis; the last dimension holds real and"
        " imaginary parts.",
    ),
)
