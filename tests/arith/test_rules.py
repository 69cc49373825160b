from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np

from tests.arith.reference import meaning, same
from tests.arith.strategies import FLOATS, INTEGERS, SCALARS
from tests.for_each import for_each
from tilewright.arith.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    const,
)
from tilewright.arith.patterns import (
    Applied,
    Apply,
    Choice,
    Converted,
    Literal,
    Pattern,
    Prefix,
    Wild,
)
from tilewright.arith.rules import ELEMENT, INDEX, is_exact
from tilewright.arith.ruleset import NamedRule, apply_rules, measure
from tilewright.arith.text import parse_expr, print_expr
from tilewright.core.dtypes import (
    BF16,
    BOOL,
    F8E8M0,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    U8,
    U16,
    U64,
    DType,
)
from tilewright.ir.scalar_semantics import cast_value

FLOAT_VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 1e-7, 7e4, 1e30, float("inf"), float("nan"))
NUMBERS = (-8, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 16)
COMPARED = ("lt", "le", "eq", "ne")


class Instance:
    """One way to fill in a pattern: a dtype for every position, literals for the constants."""

    def __init__(self, seed: int, domain: Callable[[DType], bool]) -> None:
        self.random = random.Random(seed)
        self.dtype = self.random.choice([d for d in SCALARS if domain(d)])
        self.bound: dict[str, Expr | DType] = {}

    def build(self, pattern: Pattern, dtype: DType) -> Expr:
        """The unfolded expression of this shape and dtype."""
        match pattern:
            case Wild(name, literal, domain):
                if domain is not None and not domain(dtype):
                    dtype = self.inner(INTEGERS)
                if name not in self.bound:
                    self.bound[name] = self.literal(dtype) if literal else Var(name, dtype)
                found = self.bound[name]
                assert isinstance(found, Expr)
                return found
            case Literal(value):
                return const(value, dtype)
            case Apply(op=op, a=a, b=b):
                inner = self.compared(a, b) if op in COMPARED and dtype == BOOL else dtype
                return Binary(op, self.build(a, inner), self.build(b, inner))
            case Prefix(op=op, a=a):
                return Unary(op, self.build(a, dtype))
            case Choice(cond=cond, a=a, b=b):
                return Select(self.build(cond, BOOL), self.build(a, dtype), self.build(b, dtype))
            case Converted(to=to, of=of, a=a):
                target = self.bound.setdefault(to, dtype)
                source = self.bound.setdefault(of, self.random.choice(SCALARS))
                assert isinstance(target, DType)
                assert isinstance(source, DType)
                return Cast(target, self.build(a, source))
            case Applied(fn=fn, a=a):
                return Call(fn, (self.build(a, dtype),), dtype)
        raise AssertionError(pattern)

    def inner(self, choices: tuple[DType, ...]) -> DType:
        """The one dtype that all nested comparisons of a rule compare."""
        found = self.bound.setdefault("compared dtype", self.random.choice(choices))
        assert isinstance(found, DType)
        return found

    def compared(self, a: Pattern, b: Pattern) -> DType:
        if self.at_root:
            return self.dtype
        integers = any(isinstance(x, Wild) and x.domain is not None for x in (a, b))
        return self.inner(INTEGERS if integers else SCALARS)

    at_root = True

    def root(self, pattern: Pattern) -> Expr:
        """The expression for the whole pattern, whose operands have the chosen dtype."""
        if isinstance(pattern, Apply) and pattern.op in COMPARED:
            return self.build(pattern, BOOL)
        self.at_root = False
        return self.build(pattern, self.dtype)

    def literal(self, dtype: DType) -> Const:
        if dtype.is_float:
            return Const(self.random.choice((*FLOAT_VALUES, 2.0, 8.0, 0.25)), dtype)
        if dtype == BOOL:
            return Const(self.random.random() < 0.5, BOOL)
        value = self.random.choice(NUMBERS)
        return Const(abs(value) if dtype.kind == "uint" else value, dtype)

    def value(self, dtype: DType) -> float:
        if dtype.is_float:
            return self.random.choice(FLOAT_VALUES)
        if dtype == BOOL:
            return self.random.random() < 0.5
        # Indices stay small, as they do not overflow; elements are tried at the ends too.
        span = 200 if dtype == I64 else 1 << dtype.bits
        value = self.random.choice((*NUMBERS, self.random.randrange(-span, span)))
        return value % (1 << dtype.bits) if dtype.kind == "uint" else value

    def env(self) -> dict[str, float]:
        found = ((n, e) for n, e in self.bound.items() if isinstance(e, Var))
        return {name: self.value(e.dtype) for name, e in found}


def check(before: Expr, after: Expr, instance: Instance) -> None:
    assert after.dtype == before.dtype
    assert measure(after) < measure(before), f"{before} grows to {after}"
    for _ in range(12):
        env = instance.env()
        try:
            expected = meaning(before, env)
        except (ZeroDivisionError, OverflowError):
            continue
        assert same(meaning(after, env), expected), f"{before} is not {after} for {env}"


@for_each("named", INDEX.rules, ids=lambda named: named.name)
def test_rule_keeps_the_value_and_drops_the_measure(named: NamedRule) -> None:
    applied = 0
    for seed in itertools.count():
        instance = Instance(seed, named.domain)
        before = instance.root(named.rule.pattern)
        after = named.rule.apply(before)
        if after is not None and after is not before:
            applied += 1
            check(before, after, instance)
        if applied == 25:
            break
        assert seed < 5000, f"{named.name} hardly ever applies"


@for_each(
    ("before", "after"),
    [
        ("x:f32 * 1.0", "x:f32"),
        ("x:f32 / 4.0", "x:f32 * 0.25"),
        ("x:f32 / 3.0", "x:f32 / 3.0"),
        ("x:f32 + 0.0", "x:f32 + 0.0"),
        ("x:f32 * 0.0", "x:f32 * 0.0"),
        ("x:f32 - x:f32", "x:f32 - x:f32"),
        ("x:f32 == x:f32", "x:f32 == x:f32"),
        ("!(x:f32 < y:f32)", "!(x:f32 < y:f32)"),
        ("!(x:i8 < y:i8)", "y:i8 <= x:i8"),
        ("-(-(x:f16))", "x:f16"),
        ("2.0 * 3.0 + x:f32", "6.0 + x:f32"),
        ("f32(f64(x:f32))", "x:f32"),
        ("f64(f32(x:f16))", "f64(x:f16)"),
        ("i8(f32(x:i16))", "i8(f32(x:i16))"),
        ("f16(f32(x:f64))", "f16(f32(x:f64))"),
        ("x:i8 + 100:i8 + 100:i8", "x:i8 + (-56:i8)"),
        ("select(!(p:bool), x, y)", "select(p:bool, y, x)"),
        ("select(p:bool, true, false)", "p:bool"),
        ("u8(300)", "44:u8"),
    ],
)
def test_element_rules(before: str, after: str) -> None:
    assert print_expr(apply_rules(parse_expr(before), ELEMENT)) == after


@for_each(
    ("before", "after"),
    [
        ("(x // 4) // 2", "x // 8"),
        ("(x * 8 + y) // 8", "x + y // 8"),
        ("(y + x * 8) % 8", "y % 8"),
        ("x % 8 + x // 8 * 8", "x"),
        ("x - 8 * (x // 8)", "x % 8"),
        ("x % 64 % 8", "x % 8"),
        ("min(x + 1, x + 3)", "x + 1"),
        ("x + 3 < 8", "x < 5"),
    ],
)
def test_index_rules(before: str, after: str) -> None:
    assert print_expr(apply_rules(parse_expr(before), INDEX)) == after


def test_exact_conversions() -> None:
    exact = {(I8, I16), (U8, I16), (U8, F16), (U8, BF16), (F16, F32), (BF16, F32), (I32, F64)}
    lossy = {(I16, I8), (I8, U8), (I16, F16), (U16, F16), (F16, BF16), (I64, F64), (F32, I32)}
    assert all(is_exact(a, b) for a, b in exact)
    assert not any(is_exact(a, b) for a, b in lossy)
    assert all(is_exact(d, d) and is_exact(BOOL, d) for d in (*FLOATS, *INTEGERS))
    assert not is_exact(F64, F32)
    assert not is_exact(U64, I64)


@for_each("source", [*SMALL_FLOATS, *SMALL_INTEGERS], ids=str)
def test_exact_conversions_of_small_types(source: DType) -> None:
    """What is said to be exact gives every value back; `f32` holds all of them."""
    values = np.arange(1 << source.bits, dtype=np.uint8).view(source.numpy)
    others = [*FLOATS, *INTEGERS, *SMALL_FLOATS, *SMALL_INTEGERS]
    for target in others:
        if is_exact(source, target):
            back = cast_value(cast_value(values, target), F32)
            np.testing.assert_array_equal(back, cast_value(values, F32), err_msg=str(target))
    assert is_exact(source, F32)
    assert not any(is_exact(d, F8E8M0) for d in (BOOL, *others) if d != F8E8M0)
