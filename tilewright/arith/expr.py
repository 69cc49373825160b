"""Scalar expressions: the one expression language of all three IRs.

Index arithmetic (dtype `i64`) and element arithmetic share these nodes. Nodes are interned: equal
expressions are the same object, so compare with `is`. Python operators build *folded* expressions
(`x + 0` is `x`); the classes build exactly the node asked for, which the parser relies on.

Meaning: integers wrap; `floordiv` and `mod` round toward minus infinity (Python's), `div`
truncates on integers and is IEEE division on floats, `rem` is C's remainder; a `Load` whose mask is
false reads nothing and is zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from tilewright.arith.operators import BINARY, CALLS, COMPARISONS, DIVISIONS, SHIFTS, Number
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.core.node import Interned, children

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def expr(cls: type[T]) -> type[T]:
    """Make `cls` an interned expression class."""
    made = dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)(cls)
    if "intern_key" not in vars(cls):
        made.key_by_fields()  # type: ignore[attr-defined]
    return made


class Expr(metaclass=Interned):
    """Base of all expressions; `dtype` is the element type, `lanes` > 1 marks a vector value."""

    __slots__ = ("_free_vars", "_kinds", "_lanes")
    dtype: DType
    _lanes: int
    _free_vars: frozenset[str]  # see `walk.free_vars`
    _kinds: int  # see `walk.contains`

    @property
    def lanes(self) -> int:
        """How many elements the value has: 1 for scalars."""
        try:
            return self._lanes
        except AttributeError:
            # Cached: expressions are DAGs, and an uncached walk takes exponential time.
            found = max((c.lanes for c in children(self, Expr)), default=1)
            object.__setattr__(self, "_lanes", found)
            return found

    def __add__(self, other: Expr | Number) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Expr | Number) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: Expr | Number) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: Expr | Number) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: Expr | Number) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: Expr | Number) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Expr | Number) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: Expr | Number) -> Expr:
        return binary("mod", self, other)

    def __rmod__(self, other: Expr | Number) -> Expr:
        return binary("mod", other, self)

    def __and__(self, other: Expr | Number) -> Expr:
        return binary("and", self, other)

    def __or__(self, other: Expr | Number) -> Expr:
        return binary("or", self, other)

    def __xor__(self, other: Expr | Number) -> Expr:
        return binary("xor", self, other)

    def __lshift__(self, other: Expr | Number) -> Expr:
        return binary("shl", self, other)

    def __rshift__(self, other: Expr | Number) -> Expr:
        return binary("shr", self, other)

    def __lt__(self, other: Expr | Number) -> Expr:
        return binary("lt", self, other)

    def __le__(self, other: Expr | Number) -> Expr:
        return binary("le", self, other)

    def __gt__(self, other: Expr | Number) -> Expr:
        return binary("lt", other, self)

    def __ge__(self, other: Expr | Number) -> Expr:
        return binary("le", other, self)

    def eq(self, other: Expr | Number) -> Expr:
        """The comparison `self == other` (the Python operator stays identity)."""
        return binary("eq", self, other)

    def ne(self, other: Expr | Number) -> Expr:
        """The comparison `self != other`."""
        return binary("ne", self, other)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and unpickled expressions are interned too.
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)  # type: ignore[arg-type]

    def __str__(self) -> str:
        from tilewright.arith.text import print_expr

        return print_expr(self)

    def __repr__(self) -> str:
        return f"`{self}`"


@expr
class Const(Expr):
    """A literal; its value is a Python `bool`, `int` or `float` according to the dtype."""

    value: Number
    dtype: DType = I64

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and math.isnan(self.value):
            # Emitted code must not depend on which NaN of one sign was built first.
            object.__setattr__(self, "value", math.copysign(math.nan, self.value))

    @classmethod
    def intern_key(cls, value: Number, dtype: DType = I64) -> tuple[Any, ...]:
        """Floats by bit pattern: 0.0 and -0.0 differ; NaNs of one sign are one."""
        if isinstance(value, float):
            value = math.copysign(math.nan, value) if math.isnan(value) else value
            return (cls, struct.pack("<d", value), dtype)
        exact = int(value)
        return (cls, exact, dtype)


@expr
class Var(Expr):
    """A loop variable, block iterator or symbolic size, referred to by name."""

    name: str
    dtype: DType = I64


@expr
class Binary(Expr):
    """`op` applied to two operands of equal dtype; see `BINARY` for the operators."""

    op: str
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", BOOL if self.op in COMPARISONS else self.a.dtype)


@expr
class Unary(Expr):
    """`neg` or `not` (logical on bool, bitwise on integers)."""

    op: str
    a: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


@expr
class Call(Expr):
    """A mathematical function of `CALLS` on its arguments, e.g. `exp(x)` or `fma(a, b, c)`."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType


@expr
class Cast(Expr):
    """The value converted: float to integer truncates and saturates, to bool tests for non-zero."""

    dtype: DType
    a: Expr


@expr
class Bitcast(Expr):
    """The same bits read as another dtype of equal width."""

    dtype: DType
    a: Expr


@expr
class Select(Expr):
    """`a` where `cond` holds, else `b`; both are evaluated."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


@expr
class Load(Expr):
    """The element of a named buffer; zero, and no access, where `mask` is false."""

    buffer: str
    indices: tuple[Expr, ...]
    dtype: DType
    mask: Expr | None = None


@expr
class Reduce(Expr):
    """Tensor expressions only: `op` over all values of `axes` (pairs of variable and extent)."""

    op: str
    axes: tuple[tuple[Var, Expr], ...]
    body: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.body.dtype)


@expr
class Broadcast(Expr):
    """A scalar repeated over `count` lanes."""

    a: Expr
    count: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    @property
    def lanes(self) -> int:
        """How many elements the value has."""
        return self.count


# A cache of small literals, the most frequent expressions, in front of the intern table.
_SMALL_CONSTANTS: dict[Number, Const] = {}
_SMALL_RANGE = range(-16, 4097)


def const(value: Number, dtype: DType = I64) -> Const:
    """A literal of `dtype`, its value brought to the Python type that the dtype stores."""
    if dtype is I64:
        found = _SMALL_CONSTANTS.get(value)
        if found is None:
            found = Const(int(value), dtype)
            if found.value in _SMALL_RANGE:
                _SMALL_CONSTANTS[found.value] = found
        return found
    if dtype == BOOL:
        return TRUE if value else FALSE
    return Const(float(value) if dtype.is_float else int(value), dtype)


TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


def as_expr(value: Expr | Number, like: DType = I64) -> Expr:
    """`value` as an expression; Python numbers become literals of dtype `like`."""
    return value if isinstance(value, Expr) else const(value, like)


def wrap(value: int, dtype: DType) -> int:
    """`value` as the integer type stores it: the bits that fit."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


_IDENTITY = {
    "add": (0, 0),
    "sub": (None, 0),
    "mul": (1, 1),
    "floordiv": (None, 1),
    "div": (None, 1),
}


def _fold_identity(op: str, a: Expr, b: Expr) -> Expr | None:
    """`x + 0`, `x * 1` and the like on integers, `x & true` and `x | false` on bool."""
    left, right = _IDENTITY.get(op, (None, None))
    if right is not None and isinstance(b, Const) and b.value == right:
        return a
    if left is not None and isinstance(a, Const) and a.value == left:
        return b
    if op == "mul" and any(isinstance(x, Const) and x.value == 0 for x in (a, b)):
        return _widen(const(0, a.dtype), a, b)
    if op in ("and", "or") and a.dtype == BOOL:
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Const):
                return y if x.value == (op == "and") else _widen(x, y)
    return None


def _widen(value: Expr, *operands: Expr) -> Expr:
    """What an operation folded to, as a vector where its operands are."""
    lanes = max(operand.lanes for operand in operands)
    return value if value.lanes == lanes else Broadcast(value, lanes)


def binary(op: str, a: Expr | Number, b: Expr | Number) -> Expr:
    """`op(a, b)`, with Python numbers promoted and integer and bool constants folded."""
    if not isinstance(a, Expr):
        a = as_expr(a, b.dtype if isinstance(b, Expr) else I64)
    b = as_expr(b, a.dtype)
    assert a.dtype is b.dtype or a.dtype == b.dtype, f"{op} of {a.dtype} and {b.dtype}"
    if a.dtype.is_float:
        return Binary(op, a, b)
    if isinstance(b, Const):
        if isinstance(a, Const) and _is_defined(op, a, b):
            value = BINARY[op](a.value, b.value)
            if op in COMPARISONS or a.dtype == BOOL:
                return const(value, BOOL)
            return const(wrap(value, a.dtype), a.dtype)
    elif not isinstance(a, Const):
        return Binary(op, a, b)
    return _fold_identity(op, a, b) or Binary(op, a, b)


def _is_defined(op: str, a: Const, b: Const) -> bool:
    """Whether the operator has a value on these integers."""
    if op in DIVISIONS:
        return b.value != 0
    return op not in SHIFTS or 0 <= b.value < a.dtype.bits


def unary(op: str, a: Expr) -> Expr:
    """`neg` or `not`, folded on integer and bool constants."""
    if isinstance(a, Const) and not a.dtype.is_float:
        if a.dtype == BOOL:
            return const(not a.value, BOOL)
        return const(wrap(-int(a.value) if op == "neg" else ~int(a.value), a.dtype), a.dtype)
    return Unary(op, a)


def call(fn: str, *args: Expr) -> Call:
    """A function of `CALLS`; it has the first argument's dtype (bool for `isnan`, `isinf`)."""
    assert CALLS[fn] == len(args), fn
    return Call(fn, args, BOOL if fn in ("isnan", "isinf") else args[0].dtype)


def cast(dtype: DType, a: Expr) -> Expr:
    """`a` converted to `dtype`; `a` itself where it has that dtype."""
    if a.dtype == dtype:
        return a
    if isinstance(a, Const) and a.dtype.is_integer and dtype.is_float:
        return const(a.value, dtype)
    return Cast(dtype, a)


def select(cond: Expr, a: Expr | Number, b: Expr | Number) -> Expr:
    """`a` where `cond` holds else `b`, folded when the condition is constant."""
    if not isinstance(a, Expr):
        a = as_expr(a, b.dtype if isinstance(b, Expr) else I64)
    b = as_expr(b, a.dtype)
    if isinstance(cond, Const):
        return _widen(a if cond.value else b, a, b)
    return _widen(a, cond, a) if a is b else Select(cond, a, b)


def minimum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The lesser operand (a NaN operand gives NaN)."""
    return binary("min", a, b)


def maximum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The greater operand (a NaN operand gives NaN)."""
    return binary("max", a, b)


def ceildiv(a: Expr | int, b: Expr | int) -> Expr:
    """`a / b` rounded up."""
    a, b = as_expr(a), as_expr(b)
    return (a + (b - 1)) // b


def product(factors: Iterator[Expr] | tuple[Expr, ...]) -> Expr:
    """The product of index expressions; 1 for none."""
    result: Expr = const(1)
    for factor in factors:
        result = result * factor
    return result


def as_int(e: Expr) -> int | None:
    """The value of an integer literal, `None` for anything else."""
    return int(e.value) if isinstance(e, Const) and not e.dtype.is_float else None
