"""Rewrite rules as data: a pattern, what replaces it, and under which condition.

    x, y = wild("x y"); c, d = const("c d")
    min_of(min_of(x, c), d) >> min_of(x, fold(min_of(c, d)))
    ((x // c) // d >> x // fold(c * d)).when(lambda c, d: c > 0 and d > 0)

`wild` matches any expression, `const` any literal, a number that literal. All occurrences of a name
must match the same expression. Commutative operators match in both orders.
`tilewright.arith.ruleset` collects and applies rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from inspect import signature
from itertools import product
from math import copysign
from typing import Any

from tilewright.arith.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    as_expr,
    binary,
    call,
    cast,
    select,
    unary,
)
from tilewright.arith.operators import Number
from tilewright.core.dtypes import BOOL, DType

COMMUTATIVE = frozenset(("add", "mul", "min", "max", "and", "or", "xor", "eq", "ne"))
Bindings = dict[str, Any]
Domain = Callable[[DType], bool]


class Pattern:
    """A shape of expressions; its operators build larger patterns, `>>` a rule."""

    def match(self, e: Expr, found: Bindings) -> bool:
        """Whether `e` has this shape; `found` then holds what each name stands for."""
        raise NotImplementedError

    def build(self, found: Bindings, like: DType) -> Expr:
        """The expression of this shape, with the names replaced; literals are of dtype `like`."""
        raise NotImplementedError

    def variants(self) -> Iterator[Pattern]:
        """This pattern with the operands of commutative operators in all orders."""
        yield self

    def __add__(self, other: Operand) -> Pattern:
        return Apply("add", self, other)

    def __radd__(self, other: Number) -> Pattern:
        return Apply("add", other, self)

    def __sub__(self, other: Operand) -> Pattern:
        return Apply("sub", self, other)

    def __rsub__(self, other: Number) -> Pattern:
        return Apply("sub", other, self)

    def __mul__(self, other: Operand) -> Pattern:
        return Apply("mul", self, other)

    def __truediv__(self, other: Operand) -> Pattern:
        return Apply("div", self, other)

    def __rtruediv__(self, other: Number) -> Pattern:
        return Apply("div", other, self)

    def __floordiv__(self, other: Operand) -> Pattern:
        return Apply("floordiv", self, other)

    def __mod__(self, other: Operand) -> Pattern:
        return Apply("mod", self, other)

    def __and__(self, other: Operand) -> Pattern:
        return Apply("and", self, other)

    def __or__(self, other: Operand) -> Pattern:
        return Apply("or", self, other)

    def __xor__(self, other: Operand) -> Pattern:
        return Apply("xor", self, other)

    def __lt__(self, other: Operand) -> Pattern:
        return Apply("lt", self, other)

    def __le__(self, other: Operand) -> Pattern:
        return Apply("le", self, other)

    def __gt__(self, other: Operand) -> Pattern:
        return Apply("lt", other, self)

    def __ge__(self, other: Operand) -> Pattern:
        return Apply("le", other, self)

    def eq(self, other: Operand) -> Pattern:
        """The comparison `self == other`."""
        return Apply("eq", self, other)

    def ne(self, other: Operand) -> Pattern:
        """The comparison `self != other`."""
        return Apply("ne", self, other)

    def __neg__(self) -> Pattern:
        return Prefix("neg", self)

    def __invert__(self) -> Pattern:
        return Prefix("not", self)

    def __rshift__(self, result: Operand) -> Rule:
        return Rule(self, as_pattern(result))


Operand = Pattern | Number


def as_pattern(value: Operand) -> Pattern:
    """A pattern for a number: that literal."""
    if isinstance(value, Pattern):
        return value
    # A rule as an operand means that parentheses are missing: `x & y >> z` is `x & (y >> z)`.
    assert isinstance(value, int | float), f"{value} is no pattern"
    return Literal(value)


@dataclass(frozen=True)
class Wild(Pattern):
    """Any expression with a dtype of `domain`; any literal where `literal` is set."""

    name: str
    literal: bool = False
    domain: Domain | None = None

    def match(self, e: Expr, found: Bindings) -> bool:
        """Bind the name, or compare with what it is bound to."""
        if self.literal and not isinstance(e, Const):
            return False
        if self.domain is not None and not self.domain(e.dtype):
            return False
        return bool(found.setdefault(self.name, e) is e)

    def build(self, found: Bindings, like: DType) -> Expr:
        """What the name is bound to."""
        built: Expr = found[self.name]
        return built


@dataclass(frozen=True)
class Literal(Pattern):
    """A literal of this value, of any dtype."""

    value: Number

    def match(self, e: Expr, found: Bindings) -> bool:
        """Compare values; the two zeros of floats differ."""
        return (
            isinstance(e, Const)
            and e.value == self.value
            and copysign(1, e.value) == copysign(1, self.value)
        )

    def build(self, found: Bindings, like: DType) -> Expr:
        """The literal."""
        return as_expr(self.value, BOOL if isinstance(self.value, bool) else like)


class Apply(Pattern):
    """A binary operator."""

    def __init__(self, op: str, a: Operand, b: Operand) -> None:
        self.op = op
        self.a, self.b = as_pattern(a), as_pattern(b)

    def match(self, e: Expr, found: Bindings) -> bool:
        """The operator, then both operands."""
        return (
            isinstance(e, Binary)
            and e.op == self.op
            and self.a.match(e.a, found)
            and self.b.match(e.b, found)
        )

    def build(self, found: Bindings, like: DType) -> Expr:
        """The operator on both operands, folded; a literal takes the other operand's dtype."""
        if isinstance(self.a, Literal):
            b = self.b.build(found, like)
            return binary(self.op, self.a.build(found, b.dtype), b)
        a = self.a.build(found, like)
        return binary(self.op, a, self.b.build(found, a.dtype))

    def variants(self) -> Iterator[Pattern]:
        """Both orders where the operator is commutative."""
        for a, b in product(self.a.variants(), self.b.variants()):
            yield Apply(self.op, a, b)
            if self.op in COMMUTATIVE and a != b:
                yield Apply(self.op, b, a)


class Prefix(Pattern):
    """`neg` or `not`."""

    def __init__(self, op: str, a: Pattern) -> None:
        self.op, self.a = op, a

    def match(self, e: Expr, found: Bindings) -> bool:
        """The operator, then its operand."""
        return isinstance(e, Unary) and e.op == self.op and self.a.match(e.a, found)

    def build(self, found: Bindings, like: DType) -> Expr:
        """The operator on its operand, folded."""
        return unary(self.op, self.a.build(found, like))

    def variants(self) -> Iterator[Pattern]:
        """Those of the operand."""
        return (Prefix(self.op, a) for a in self.a.variants())


class Choice(Pattern):
    """A `select`."""

    def __init__(self, cond: Pattern, a: Operand, b: Operand) -> None:
        self.cond, self.a, self.b = cond, as_pattern(a), as_pattern(b)

    def match(self, e: Expr, found: Bindings) -> bool:
        """The condition, then both values."""
        return (
            isinstance(e, Select)
            and self.cond.match(e.cond, found)
            and self.a.match(e.a, found)
            and self.b.match(e.b, found)
        )

    def build(self, found: Bindings, like: DType) -> Expr:
        """The choice, folded."""
        a, b = self.a.build(found, like), self.b.build(found, like)
        return select(self.cond.build(found, BOOL), a, b)


class Converted(Pattern):
    """A cast; `to` names its dtype, `of` that of its operand."""

    def __init__(self, to: str, a: Pattern, of: str) -> None:
        self.to, self.a, self.of = to, a, of

    def match(self, e: Expr, found: Bindings) -> bool:
        """The operand, and the dtypes by name."""
        return (
            isinstance(e, Cast)
            and found.setdefault(self.to, e.dtype) == e.dtype
            and found.setdefault(self.of, e.a.dtype) == e.a.dtype
            and self.a.match(e.a, found)
        )

    def build(self, found: Bindings, like: DType) -> Expr:
        """The cast, folded."""
        return cast(found[self.to], self.a.build(found, like))


class Applied(Pattern):
    """A function of one argument."""

    def __init__(self, fn: str, a: Pattern) -> None:
        self.fn, self.a = fn, a

    def match(self, e: Expr, found: Bindings) -> bool:
        """The function, then its argument."""
        return isinstance(e, Call) and e.fn == self.fn and self.a.match(e.args[0], found)

    def build(self, found: Bindings, like: DType) -> Expr:
        """The call."""
        return call(self.fn, self.a.build(found, like))


class Fold(Pattern):
    """In results only: arithmetic on literals whose result must be a literal."""

    def __init__(self, a: Pattern) -> None:
        self.a = a

    def build(self, found: Bindings, like: DType) -> Expr:
        """The literal."""
        built = self.a.build(found, like)
        assert isinstance(built, Const), f"{built} is no literal"
        return built


class Computed(Pattern):
    """In results only: a literal computed from other literals and its own `dtype`."""

    def __init__(self, function: Callable[..., Number]) -> None:
        self.function = function
        self.names = tuple(signature(function).parameters)

    def build(self, found: Bindings, like: DType) -> Expr:
        """The literal, of the expected dtype."""
        given = {**found, "dtype": like}
        return as_expr(self.function(*(_plain(given[name]) for name in self.names)), like)


def wild(names: str, domain: Domain | None = None) -> Any:
    """Patterns for any expression with a dtype of `domain`: `x, y = wild("x y")`."""
    return _named(names, False, domain)


def const(names: str) -> Any:
    """Patterns for any literal, one a name: `c, d = const("c d")`."""
    return _named(names, True, None)


def _named(names: str, literal: bool, domain: Domain | None) -> Wild | tuple[Wild, ...]:
    made = tuple(Wild(name, literal, domain) for name in names.split())
    return made if len(made) > 1 else made[0]


def min_of(a: Operand, b: Operand) -> Pattern:
    """`min(a, b)`."""
    return Apply("min", a, b)


def max_of(a: Operand, b: Operand) -> Pattern:
    """`max(a, b)`."""
    return Apply("max", a, b)


def select_of(cond: Pattern, a: Operand, b: Operand) -> Pattern:
    """`select(cond, a, b)`."""
    return Choice(cond, a, b)


def cast_of(to: str, a: Pattern, of: str) -> Pattern:
    """A cast to the dtype that `to` then names, from the one that `of` names."""
    return Converted(to, a, of)


def call_of(fn: str, a: Pattern) -> Pattern:
    """`fn(a)`."""
    return Applied(fn, a)


def fold(a: Pattern) -> Pattern:
    """Arithmetic on literals, done when the rule is applied."""
    return Fold(a)


def compute(function: Callable[..., Number]) -> Pattern:
    """A literal computed from literals: `compute(lambda c: 1 / c)`."""
    return Computed(function)


@dataclass(frozen=True)
class Rule:
    """`pattern` becomes `result` where `condition` holds for what the names stand for."""

    pattern: Pattern
    result: Pattern
    condition: Callable[..., bool] | None = None
    names: tuple[str, ...] = ()

    def when(self, condition: Callable[..., bool]) -> Rule:
        """The rule under a condition, whose parameters are names of the pattern.

        Literals are handed to it as numbers, anything else as expressions.
        """
        return replace(self, condition=condition, names=tuple(signature(condition).parameters))

    def apply(self, e: Expr) -> Expr | None:
        """What `e` becomes; None where the rule does not apply."""
        found: Bindings = {}
        if not self.pattern.match(e, found):
            return None
        if self.condition is not None:
            if not self.condition(*(_plain(found[name]) for name in self.names)):
                return None
        return self.result.build(found, e.dtype)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Const) else value
