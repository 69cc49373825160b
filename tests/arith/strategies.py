"""Random expressions and environments for the tests of `tilewright.arith`."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    Unary,
    Var,
    call,
    const,
)
from tilewright.arith.operators import CALLS
from tilewright.arith.vector import Ramp
from tilewright.core.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    DType,
)

LOOPS = ("i", "j", "k.0", "k.1")
SIZES = ("N", "M")
INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
FLOATS = (F16, BF16, F32, F64)
SCALARS = (BOOL, *INTEGERS, *FLOATS)
BUFFERS: dict[str, DType] = {f"B_{d}": d for d in SCALARS}


@dataclass(frozen=True)
class World:
    """Extents of the loop variables and values of all variables that agree with them."""

    extents: dict[str, Expr]
    env: dict[str, int]


def _extents() -> st.SearchStrategy[Expr]:
    sizes = st.sampled_from(SIZES).map(Var)
    factors = st.integers(1, 8)
    return st.one_of(
        factors.map(const),
        st.sampled_from((1, 2, 4, 8, 16)).map(const),
        sizes,
        st.builds(lambda n, c: n // c, sizes, factors),
        st.builds(lambda n, c: (n + (c - 1)) // c, sizes, factors),
        st.builds(lambda n, c: n + c, sizes, factors),
        st.builds(lambda n, c: n * c, sizes, factors),
        st.just(Var("N") * Var("M")),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Extents and one environment in which every loop variable is in its range."""
    env = {name: draw(st.integers(0, 20)) for name in SIZES}
    extents = {name: draw(_extents()) for name in LOOPS}
    for name, extent in extents.items():
        size = evaluate(extent, env)
        assume(size > 0)
        env[name] = draw(st.integers(0, size - 1))
    return World(extents, env)


@st.composite
def index_exprs(draw: st.DrawFn, depth: int = 4) -> Expr:
    """Unfolded index expressions over `LOOPS` and `SIZES`."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        name = draw(st.sampled_from((*LOOPS, *SIZES, *LOOPS, "")))
        return Var(name) if name else const(draw(st.sampled_from(_NUMBERS)))
    return draw(st.sampled_from(_INDEX_MAKERS))(draw, depth - 1)


_NUMBERS = (0, 1, 2, 3, 4, 7, 8, 16, -1, -2, -8)


def _sum(draw: st.DrawFn, depth: int) -> Expr:
    op = draw(st.sampled_from(("add", "sub")))
    return Binary(op, draw(index_exprs(depth)), draw(index_exprs(depth)))


def _product(draw: st.DrawFn, depth: int) -> Expr:
    number = draw(st.sampled_from((0, 2, 4, 8)))
    other = const(number) if number else draw(index_exprs(min(depth, 1)))
    return Binary("mul", draw(index_exprs(depth)), other)


def _division(draw: st.DrawFn, depth: int) -> Expr:
    kind = draw(st.sampled_from(("number", "number", "size", "multiple", "any")))
    size = Var(draw(st.sampled_from(SIZES)))
    divisors = {
        "number": lambda: const(draw(st.sampled_from((1, 2, 3, 4, 8, 8, 16, -1, -4)))),
        "size": lambda: size,
        "multiple": lambda: Binary("mul", size, const(4)),
        "any": lambda: draw(index_exprs(min(depth, 2))),
    }
    op = draw(st.sampled_from(("floordiv", "mod")))
    return Binary(op, draw(index_exprs(depth)), divisors[kind]())


def _choice(draw: st.DrawFn, depth: int) -> Expr:
    op = draw(st.sampled_from(("min", "max", "select", "neg")))
    a, b = draw(index_exprs(depth)), draw(index_exprs(depth))
    if op == "select":
        return Select(draw(conditions(min(depth, 1))), a, b)
    return Unary("neg", a) if op == "neg" else Binary(op, a, b)


_INDEX_MAKERS = (_sum, _sum, _product, _division, _division, _choice)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2, joins: int = 2) -> Expr:
    """Comparisons of index expressions, joined by logic."""
    op = draw(st.sampled_from(("lt", "le", "eq", "ne", "and", "or", "xor", "not")))
    if joins == 0 or op in ("lt", "le", "eq", "ne"):
        op = draw(st.sampled_from(("lt", "le", "eq", "ne")))
        return Binary(op, draw(index_exprs(depth)), draw(index_exprs(depth)))
    if op == "not":
        return Unary("not", draw(conditions(depth, joins - 1)))
    return Binary(op, draw(conditions(depth, joins - 1)), draw(conditions(depth, joins - 1)))


def literals(dtype: DType) -> st.SearchStrategy[Expr]:
    """Any literal of `dtype`."""
    if dtype == BOOL:
        return st.booleans().map(lambda v: Const(v, BOOL))
    if dtype.is_float:
        return st.floats(allow_nan=True, allow_infinity=True).map(lambda v: Const(v, dtype))
    low = 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))
    return st.integers(low, low + (1 << dtype.bits) - 1).map(lambda v: Const(v, dtype))


@st.composite
def typed_exprs(draw: st.DrawFn, dtype: DType | None = None, depth: int = 3) -> Expr:
    """Unfolded expressions of all classes and of any dtype."""
    if dtype is None:
        dtype = draw(st.sampled_from(SCALARS))
    if depth == 0:
        return draw(st.one_of(literals(dtype), st.just(Var(f"v_{dtype}.0", dtype))))
    return draw(st.sampled_from(_MAKERS))(draw, dtype, depth - 1)


@st.composite
def element_exprs(draw: st.DrawFn, dtype: DType | None = None, depth: int = 3) -> Expr:
    """Unfolded arithmetic on elements of any dtype, over variables `v_<dtype>.<n>`."""
    if dtype is None:
        dtype = draw(st.sampled_from(SCALARS))
    kinds = ("leaf", "binary", "binary", "binary", "unary", "select", "cast")
    kind = draw(st.sampled_from(kinds)) if depth else "leaf"
    if kind == "leaf":
        variable = Var(f"v_{dtype}.{draw(st.integers(0, 1))}", dtype)
        return draw(st.sampled_from((variable, variable, *_common_literals(dtype))))
    if kind == "binary":
        operand, op = draw(_operators(dtype))
        inner = element_exprs(operand, depth - 1)
        return Binary(op, draw(inner), draw(inner))
    inner = element_exprs(dtype, depth - 1)
    if kind == "unary":
        return Unary("not" if dtype == BOOL else "neg", draw(inner))
    if kind == "select":
        return Select(draw(element_exprs(BOOL, depth - 1)), draw(inner), draw(inner))
    return Cast(dtype, draw(element_exprs(None, depth - 1)))


def _common_literals(dtype: DType) -> tuple[Expr, ...]:
    values = (0.0, -0.0, 1.0, -1.0, 4.0) if dtype.is_float else (0, 1, 4)
    return tuple(const(value, dtype) for value in values)


@st.composite
def _operators(draw: st.DrawFn, dtype: DType) -> tuple[DType, str]:
    if dtype == BOOL:
        logic = draw(st.booleans())
        operand = BOOL if logic else draw(st.sampled_from(SCALARS))
        return operand, draw(st.sampled_from(("and", "or", "xor") if logic else _COMPARISONS))
    ops = ("add", "sub", "mul", "min", "max", "div") if dtype.is_float else _INTEGER_OPS
    return dtype, draw(st.sampled_from(ops))


_COMPARISONS = ("lt", "le", "eq", "ne")
_INTEGER_OPS = ("add", "sub", "mul", "min", "max", "and", "or", "xor")


@st.composite
def element_values(draw: st.DrawFn) -> dict[str, float]:
    """A value for each variable of `element_exprs`; `i64` ones are small sizes."""
    floats = st.sampled_from((0.0, -0.0, 1.0, -1.5, 3.0, 1e30, float("inf"), float("nan")))
    values: dict[str, float] = {}
    for dtype in SCALARS:
        for n in range(2):
            name = f"v_{dtype}.{n}"
            if dtype.is_float:
                values[name] = draw(floats)
            else:
                low, high = (0, 9) if dtype == I64 else (-(1 << 31), 1 << 32)
                values[name] = draw(st.integers(low, high))
    return values


def _binary(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    if dtype == BOOL and draw(st.booleans()):
        operand = draw(st.sampled_from(SCALARS))
        op = draw(st.sampled_from(("lt", "le", "eq", "ne")))
    else:
        operand = dtype
        floats = ("add", "sub", "mul", "div", "min", "max")
        integers = (*floats, "floordiv", "mod", "rem", "and", "or", "xor", "shl", "shr")
        logic = ("and", "or", "xor")
        op = draw(
            st.sampled_from(logic if dtype == BOOL else floats if dtype.is_float else integers)
        )
    return Binary(op, draw(typed_exprs(operand, depth)), draw(typed_exprs(operand, depth)))


def _unary(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    op = "not" if dtype == BOOL or (dtype.is_integer and draw(st.booleans())) else "neg"
    return Unary(op, draw(typed_exprs(dtype, depth)))


def _call(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    if dtype == BOOL:
        return call("isnan", draw(typed_exprs(draw(st.sampled_from(FLOATS)), depth)))
    fn = draw(st.sampled_from(sorted(set(CALLS) - {"isnan", "isinf"})))
    args = tuple(draw(typed_exprs(dtype, depth)) for _ in range(CALLS[fn]))
    return Call(fn, args, dtype)


def _convert(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    source = draw(st.sampled_from(SCALARS))
    same_width = source.bits == dtype.bits and draw(st.booleans())
    return (Bitcast if same_width else Cast)(dtype, draw(typed_exprs(source, depth)))


def _select(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    cond = draw(typed_exprs(BOOL, depth))
    return Select(cond, draw(typed_exprs(dtype, depth)), draw(typed_exprs(dtype, depth)))


def _load(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    indices = tuple(draw(typed_exprs(I64, depth)) for _ in range(draw(st.integers(0, 2))))
    mask = draw(typed_exprs(BOOL, depth)) if draw(st.booleans()) else None
    return Load(f"B_{dtype}", indices, dtype, mask)


def _reduce(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    axes = [
        (Var(name), draw(typed_exprs(I64, depth)))
        for name in draw(st.sampled_from((("r",), ("r", "s.1"))))
    ]
    op = draw(st.sampled_from(("any", "all") if dtype == BOOL else ("sum", "prod", "max", "min")))
    return Reduce(op, tuple(axes), draw(typed_exprs(dtype, depth)))


def _vector(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    if dtype == I64 and draw(st.booleans()):
        return Ramp(draw(typed_exprs(I64, depth)), draw(st.integers(-4, 4)), 4)
    return Broadcast(draw(typed_exprs(dtype, depth)), 4)


_MAKERS = (_binary, _binary, _unary, _call, _convert, _select, _load, _reduce, _vector)
