"""Sets of integer points and relations between them, exact over symbolic sizes, by isl.

    ParamSpace(("M",)).relation(("i",), ("t",), [i < M, t.eq(i // 2)])      { [i] -> [t] : ... }

The only file that imports islpy. A product of variables, or a division by one, is not affine and
raises `NotAffineError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import islpy

from tilewright.arith.affine import factors, to_affine
from tilewright.arith.expr import TRUE, Binary, Const, Expr, Unary, Var, as_int


class NotAffineError(Exception):
    """An expression that no linear form with constant divisors can express."""


class ParamSpace:
    """The symbolic sizes that relations may mention, each at least `least`."""

    def __init__(self, sizes: Sequence[str], least: int = 1) -> None:
        self.sizes = tuple(sizes)
        self.least = least
        self._params = [f"p{n}" for n in range(len(self.sizes))]

    def relation(
        self,
        domain: Sequence[str],
        image: Sequence[Expr],
        conditions: Iterable[Expr],
        names: tuple[str, str] = ("", ""),
    ) -> Relation:
        """`{ names[0][domain] -> names[1][image] }` under conditions.

        Variables of the image that are not in the domain take all values that the conditions allow.
        """
        known = dict(zip(self.sizes, self._params, strict=True))
        known.update((name, f"d{n}") for n, name in enumerate(domain))
        known.update((e.name, f"o{n}") for n, e in enumerate(image) if isinstance(e, Var))
        parts = [f"{p} >= {self.least}" for p in self._params]
        parts += [_condition(c, known) for c in conditions if c is not TRUE]
        source = f"{names[0]}[{', '.join(known[d] for d in domain)}]"
        target = f"{names[1]}[{', '.join(_index(e, known) for e in image)}]"
        body = " and ".join(parts) or "true"
        return Relation(
            islpy.Map(f"[{', '.join(self._params)}] -> {{ {source} -> {target} : {body} }}")
        )


class Relation:
    """A relation between integer points."""

    def __init__(self, map_: Any) -> None:
        self._map = map_

    def __and__(self, other: Relation) -> Relation:
        return Relation(self._map.intersect(other._map))

    def __sub__(self, other: Relation) -> Relation:
        return Relation(self._map.subtract(other._map))

    def meets(self, other: Relation) -> Relation:
        """The pairs of points that have a common image under this and the other relation."""
        return Relation(self._map.apply_range(other._map.reverse()))

    def before(self, other: Relation) -> Relation:
        """The pairs with an image under this lexicographically before one under the other."""
        return Relation(self._map.lex_lt_map(other._map))

    def not_before(self, other: Relation) -> Relation:
        """The pairs with an image under this equal to or after one under the other."""
        return Relation(self._map.lex_ge_map(other._map))

    def first(self) -> Relation:
        """Each point with the least of its images only."""
        return self if self._map.is_single_valued() else Relation(self._map.lexmin())

    def prefix(self, count: int) -> Relation:
        """The relation to the first `count` coordinates of the images."""
        dims = self._map.dim(islpy.dim_type.out)
        return Relation(self._map.project_out(islpy.dim_type.out, count, dims - count))

    def from_missing(self, other: Relation) -> Relation:
        """The pairs whose first point is not in the domain of the other relation."""
        return Relation(self._map.subtract_domain(other._map.domain()))

    def to_present(self, other: Relation) -> Relation:
        """The pairs whose second point is in the domain of the other relation."""
        return Relation(self._map.intersect_range(other._map.domain()))

    def is_empty(self) -> bool:
        """Whether there is no pair at all."""
        return bool(self._map.is_empty())

    def sample(self) -> tuple[list[int], list[int], list[int]]:
        """The sizes and both points of some pair; the relation must not be empty."""
        point = self._map.wrap().sample_point()

        def coordinates(kind: Any, count: int) -> list[int]:
            return [int(point.get_coordinate_val(kind, n).to_python()) for n in range(count)]

        dims = islpy.dim_type
        first, second = self._map.dim(dims.in_), self._map.dim(dims.out)
        both = coordinates(dims.set, first + second)
        sizes = coordinates(dims.param, self._map.dim(dims.param))
        return sizes, both[:first], both[first:]


def _index(e: Expr, names: Mapping[str, str]) -> str:
    """An index expression in isl's syntax."""
    if isinstance(e, Var) and e.name in names:
        return names[e.name]
    form = to_affine(e)
    terms = [str(form.constant)] if form.constant or not form.coeffs else []
    terms += [f"{c}*{_atom(atom, names)}" for atom, c in form.coeffs.items()]
    return f"({' + '.join(terms)})"


def _atom(e: Expr, names: Mapping[str, str]) -> str:
    if isinstance(e, Var) and e.name in names:
        return names[e.name]
    if isinstance(e, Binary) and len(factors(e)) == 1:
        divisor = as_int(e.b)
        if e.op in ("min", "max"):
            return f"{e.op}({_index(e.a, names)}, {_index(e.b, names)})"
        if e.op == "floordiv" and divisor is not None and divisor > 0:
            return f"floor({_index(e.a, names)}/{divisor})"
        if e.op == "mod" and divisor is not None and divisor > 0:
            return f"({_index(e.a, names)} mod {divisor})"
    raise NotAffineError(str(e))


_COMPARE = {"lt": "<", "le": "<=", "eq": "=", "ne": "!="}


def _condition(e: Expr, names: Mapping[str, str]) -> str:
    """A condition in isl's syntax."""
    if isinstance(e, Const):
        return "true" if e.value else "false"
    if isinstance(e, Unary) and e.op == "not":
        return f"not ({_condition(e.a, names)})"
    if isinstance(e, Binary) and e.op in ("and", "or"):
        return f"({_condition(e.a, names)} {e.op} {_condition(e.b, names)})"
    if isinstance(e, Binary) and e.op in _COMPARE:
        return f"{_index(e.a, names)} {_COMPARE[e.op]} {_index(e.b, names)}"
    raise NotAffineError(str(e))
