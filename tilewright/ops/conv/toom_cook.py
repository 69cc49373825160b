"""Short convolutions with few multiplications: the transforms of Toom, Cook and Winograd.

`tile` outputs of a filter with `window` taps are the product of two polynomials. It is computed at
`tile + window - 1` points, one of which is infinity:

    y = outputs ((filters w) * (inputs x))

with three small matrices, which follow from the points exactly. Symmetric points share most of
their arithmetic, and points near 1 keep the numbers of one size: rounding errors stay small.

Barabasz, Anderson, Soodhalter, Gregg, "Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks", 2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod, sqrt

from tilewright.arith.expr import Binary, Expr, Var, const
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import F32

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]


def _points(*symmetric: Fraction | int, alone: Iterable[Fraction] = ()) -> tuple[Fraction, ...]:
    pairs = [sign * Fraction(p) for p in symmetric for sign in (1, -1)]
    return (Fraction(0), *pairs, *alone)


# The finite points, by their number: of all with three binary digits after the point those that
# enlarge rounding errors least. All entries of the transforms are then exact in f32.
_HALF = Fraction(1, 2)
POINTS: dict[int, tuple[Fraction, ...]] = {
    0: (),
    1: _points(),
    2: _points(alone=(Fraction(-1),)),
    3: _points(1),
    4: _points(Fraction(3, 2), alone=(-_HALF,)),
    5: _points(Fraction(5, 8), Fraction(3, 2)),
    6: _points(_HALF, Fraction(9, 8), alone=(Fraction(-5, 2),)),
    7: _points(_HALF, 1, 2),
    9: _points(Fraction(3, 8), Fraction(7, 8), Fraction(5, 4), 2),
}


@dataclass(frozen=True)
class Transforms:
    """The matrices: a row a point (`filters`, `inputs`), a row an output (`outputs`)."""

    filters: Matrix
    inputs: Matrix
    outputs: Matrix

    @property
    def amplification(self) -> float:
        """How much larger rounding errors are than those of the plain sums, at worst."""
        weights = [
            sum(g * g for g in w) * sum(b * b for b in x)
            for w, x in zip(self.filters, self.inputs, strict=True)
        ]
        squares = [
            sum(a * a * w for a, w in zip(row, weights, strict=True)) for row in self.outputs
        ]
        return sqrt(max(squares) / len(self.filters[0]))


@cache
def transforms(tile: int, window: int) -> Transforms:
    """The transforms for `tile` outputs of a filter with `window` taps."""
    points = POINTS[tile + window - 2]
    filters, inputs = [], []
    for p in points:
        others = [q for q in points if q != p]
        scale = prod((p - q for q in others), start=Fraction(1))
        filters.append(tuple(p**k / scale for k in range(window)))
        inputs.append((*_with_roots(others), Fraction(0)))
    last = tuple(Fraction(k == window - 1) for k in range(window))
    outputs = [(*(p**i for p in points), Fraction(i == tile - 1)) for i in range(tile)]
    return Transforms((*filters, last), (*inputs, _with_roots(points)), tuple(outputs))


def _with_roots(roots: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients, constant first, of the polynomial with these roots."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [s - root * c for s, c in zip(shifted, [*found, Fraction(0)], strict=True)]
    return tuple(found)


def combine(matrix: Matrix, values: Sequence[Expr]) -> list[Expr]:
    """The product of a matrix and a vector, with sums that several rows need written alike.

    Columns that mostly differ in signs are added and subtracted first, or rows that do are the sum
    and the difference of two shorter rows, whichever finds more to share.
    """
    columns: Matrix = tuple(zip(*matrix, strict=True))
    by_rows, by_columns = _pairs(matrix), _pairs(columns)
    if _saved(columns, by_columns) > _saved(matrix, by_rows):
        return _combine_columns(columns, by_columns, list(values))
    found: dict[int, Expr] = {}
    for j, k in by_rows:
        even, odd = _halves(matrix[j], matrix[k])
        common, (rest, factor) = _weighted(even, values), _normed(odd, values)
        found[j], found[k] = _added(common, factor, rest), _added(common, -factor, rest)
    return [found[i] if i in found else _weighted(row, values) for i, row in enumerate(matrix)]


def _combine_columns(
    columns: Matrix, pairs: Sequence[tuple[int, int]], values: list[Expr]
) -> list[Expr]:
    parts = list(columns)
    for j, k in pairs:
        parts[j], parts[k] = _halves(columns[j], columns[k])
        values[j], values[k] = values[j] + values[k], values[j] - values[k]
    return [_weighted(row, values) for row in zip(*parts, strict=True)]


@cache
def additions(matrix: Matrix) -> int:
    """How many additions and subtractions `combine` does; multiplications mostly join them."""
    places = [Var(f"v{n}", F32) for n in range(len(matrix[0]))]
    found = {x for e in combine(matrix, places) for x in subexpressions(e)}
    return sum(isinstance(x, Binary) and x.op != "mul" for x in found)


def _pairs(vectors: Matrix) -> list[tuple[int, int]]:
    """Vectors, each in one pair, whose half sum and half difference have more zeros than they."""
    free, found = list(range(len(vectors))), []
    while free:
        j = free.pop(0)
        for k in free:
            if _size(*_halves(vectors[j], vectors[k])) < _size(vectors[j], vectors[k]):
                found.append((j, k))
                free.remove(k)
                break
    return found


def _saved(vectors: Matrix, pairs: Sequence[tuple[int, int]]) -> int:
    """How many terms fewer there are if pairs are replaced by their half sums and differences."""
    found = [(vectors[j], vectors[k]) for j, k in pairs]
    return sum(_size(a, b) - _size(*_halves(a, b)) for a, b in found)


def _size(*vectors: Row) -> int:
    return sum(x != 0 for v in vectors for x in v)


def _halves(a: Row, b: Row) -> tuple[Row, Row]:
    pairs = list(zip(a, b, strict=True))
    return tuple((x + y) / 2 for x, y in pairs), tuple((x - y) / 2 for x, y in pairs)


def _normed(row: Row, values: Sequence[Expr]) -> tuple[Expr, Fraction]:
    """A weighted sum as one whose last weight is 1, and the factor that it is to be taken with."""
    factor = next(c for c in reversed(row) if c)
    return _weighted(tuple(c / factor for c in row), values), factor


def _weighted(row: Row, values: Sequence[Expr]) -> Expr:
    """A weighted sum; it starts with a term of weight 1 if there is one, which costs nothing."""
    terms = [(c, v) for c, v in zip(row, values, strict=True) if c]
    first = next((n for n, (c, _) in enumerate(terms) if c == 1), 0)
    weight, start = terms.pop(first)
    total = start if weight == 1 else start * const(float(weight), start.dtype)
    for c, v in terms:
        total = _added(total, c, v)
    return total


def _added(total: Expr, weight: Fraction, value: Expr) -> Expr:
    term = value if abs(weight) == 1 else value * const(float(abs(weight)), value.dtype)
    return total + term if weight > 0 else total - term
