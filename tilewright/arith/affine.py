"""Linear forms of index expressions: `i * 8 + j - 1` is `{i: 8, j: 1}` and the constant -1.

An *atom* is a term that is not a sum: a variable, a division, a load, or a product of these.
Products of sums are multiplied out, `(i + 1) * W` being `{W * i: 1, W: 1}`, so that equal
polynomials have equal forms. `from_affine` writes terms in the order of their text: positive ones,
then negative ones, then the constant (first where all else is negative).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from tilewright.arith.expr import Binary, Const, Expr, Unary, Var
from tilewright.arith.memo import Memo
from tilewright.arith.text import print_expr
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import I64

# A product of sums that would expand to more terms than this stays a product.
MAX_PRODUCT_TERMS = 64


class Affine:
    """An immutable sum of integer multiples of atoms and a constant; no coefficient is zero."""

    __slots__ = ("_key", "coeffs", "constant")

    def __init__(self, coeffs: dict[Expr, int], constant: int) -> None:
        self.coeffs = coeffs
        self.constant = constant
        self._key: tuple[frozenset[tuple[Expr, int]], int] | None = None

    @property
    def key(self) -> tuple[frozenset[tuple[Expr, int]], int]:
        """A hashable stand-in: equal forms have equal keys."""
        if self._key is None:
            self._key = (frozenset(self.coeffs.items()), self.constant)
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine):
            return NotImplemented
        return self.constant == other.constant and self.coeffs == other.coeffs

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Affine) -> Affine:
        return self.plus(other, 1)

    def __sub__(self, other: Affine) -> Affine:
        return self.plus(other, -1)

    def __neg__(self) -> Affine:
        return self.scale(-1)

    def __mul__(self, other: Affine) -> Affine:
        if not other.coeffs:
            return self.scale(other.constant)
        if not self.coeffs:
            return other.scale(self.constant)
        result = self.scale(other.constant)
        for atom, factor in other.coeffs.items():
            result = result + self.times(atom, factor)
        return result

    def plus(self, other: Affine, factor: int) -> Affine:
        """`self + other * factor`."""
        coeffs = dict(self.coeffs)
        for atom, c in other.coeffs.items():
            total = coeffs.get(atom, 0) + c * factor
            if total:
                coeffs[atom] = total
            else:
                coeffs.pop(atom, None)
        return Affine(coeffs, self.constant + other.constant * factor)

    def shift(self, constant: int) -> Affine:
        """`self + constant`."""
        return Affine(self.coeffs, self.constant + constant) if constant else self

    def scale(self, factor: int) -> Affine:
        """`self * factor`."""
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Affine({a: c * factor for a, c in self.coeffs.items()}, self.constant * factor)

    def times(self, atom: Expr, factor: int) -> Affine:
        """`self * atom * factor`, where `factor` is not 0."""
        coeffs: dict[Expr, int] = {}
        for other, c in self.coeffs.items():
            product = product_atom((*factors(other), *factors(atom)))
            coeffs[product] = coeffs.get(product, 0) + c * factor
        if self.constant:
            coeffs[atom] = coeffs.get(atom, 0) + self.constant * factor
        return Affine({a: c for a, c in coeffs.items() if c}, 0)

    def divide(self, factor: int) -> Affine:
        """`self / factor`, which must leave no remainder."""
        return Affine({a: c // factor for a, c in self.coeffs.items()}, self.constant // factor)

    def gcd(self) -> int:
        """The greatest common divisor of the coefficients; 0 where there are none."""
        return gcd(*self.coeffs.values())

    def __repr__(self) -> str:
        return f"Affine({from_affine(self)})"


ZERO = Affine({}, 0)


def number(value: int) -> Affine:
    """The form of a constant."""
    return Affine({}, value)


def single(atom: Expr, coefficient: int = 1) -> Affine:
    """The form of one atom times a constant that is not 0."""
    return Affine({atom: coefficient}, 0)


_FORMS: Memo[Expr, Affine] = Memo()
_TEXTS: Memo[Expr, str] = Memo()


def text_key(e: Expr) -> str:
    """The printed text of `e`, cached: the sort key of terms and factors."""
    found = _TEXTS.get(e)
    return found if found is not None else _TEXTS.keep(e, print_expr(e))


def factors(atom: Expr) -> tuple[Expr, ...]:
    """The atoms whose product `atom` is."""
    if isinstance(atom, Binary) and atom.op == "mul":
        return (*factors(atom.a), *factors(atom.b))
    return (atom,)


def product_atom(parts: Iterable[Expr]) -> Expr:
    """The one atom for a product of at least one atom."""
    first, *rest = sorted(parts, key=text_key)
    for part in rest:
        first = Binary("mul", first, part)
    return first


def to_affine(e: Expr) -> Affine:
    """The linear form of an `i64` expression; an expression that is not a sum becomes an atom."""
    found = _FORMS.get(e)
    return found if found is not None else _FORMS.keep(e, _form(e))


def _form(e: Expr) -> Affine:
    if isinstance(e, Const):
        return Affine({}, int(e.value))
    if isinstance(e, Binary) and e.dtype == I64:
        if e.op == "add":
            return to_affine(e.a).plus(to_affine(e.b), 1)
        if e.op == "sub":
            return to_affine(e.a).plus(to_affine(e.b), -1)
        if e.op == "mul":
            return _product(e, to_affine(e.a), to_affine(e.b))
    if isinstance(e, Unary) and e.op == "neg" and e.dtype == I64:
        return -to_affine(e.a)
    return single(e)


def _product(e: Binary, a: Affine, b: Affine) -> Affine:
    if len(a.coeffs) * len(b.coeffs) <= MAX_PRODUCT_TERMS:
        return a * b
    return single(e)


def from_affine(form: Affine) -> Expr:
    """The canonical expression of a linear form."""
    result: Expr | None = None
    terms, constant = _ordered(form), form.constant
    if terms and terms[0][1] < 0 and constant > 0:
        result, constant = Const(constant), 0
    for atom, c in terms:
        if result is None:
            result = _term(atom, c)
        elif c > 0:
            result = Binary("add", result, _term(atom, c))
        else:
            result = Binary("sub", result, _term(atom, -c))
    return with_constant(result, constant)


def _ordered(form: Affine) -> list[tuple[Expr, int]]:
    terms = list(form.coeffs.items())
    if len(terms) > 1:
        terms.sort(key=lambda term: (term[1] < 0, text_key(term[0])))
    return terms


def _term(atom: Expr, coefficient: int) -> Expr:
    return atom if coefficient == 1 else Binary("mul", atom, Const(coefficient))


def with_constant(sum_: Expr | None, constant: int) -> Expr:
    """The canonical expression of a sum, if there is one, and a constant behind it."""
    if sum_ is None:
        return Const(constant)
    if constant == 0:
        return sum_
    if constant < 0:
        return Binary("sub", sum_, Const(-constant))
    return Binary("add", sum_, Const(constant))


def split_by(form: Affine, name: str) -> tuple[Affine, Affine] | None:
    """`(p, rest)` with `form == p * name + rest`; None where the variable also occurs elsewhere."""
    inside: dict[Expr, int] = {}
    outside: dict[Expr, int] = {}
    constant = 0
    for atom, c in form.coeffs.items():
        if name not in free_vars(atom):
            outside[atom] = c
            continue
        others = [f for f in factors(atom) if not (isinstance(f, Var) and f.name == name)]
        if len(others) != len(factors(atom)) - 1 or any(name in free_vars(f) for f in others):
            return None
        if others:
            inside[product_atom(others)] = c
        else:
            constant = c
    return Affine(inside, constant), Affine(outside, form.constant)


def stride_of(e: Expr, var_name: str) -> int | None:
    """The increase of `e` per step of the variable; None where it is not constant."""
    split = split_by(to_affine(e), var_name)
    return None if split is None or split[0].coeffs else split[0].constant
