"""One function a dtype and number of lanes in which every kind of expression node occurs."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np

from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    call,
    const,
)
from tilewright.arith.operators import COMPARISONS
from tilewright.arith.vector import Lane, Ramp
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
from tilewright.ir.loop.nodes import Buffer, For, Func, Seq, Store

DTYPES = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64)

_FLOAT_BINARY = ("add", "sub", "mul", "div", "rem", "min", "max", *COMPARISONS)
_INT_BINARY = (
    *("add", "sub", "mul", "div", "floordiv", "mod", "rem", "min", "max"),
    *("and", "or", "xor", "shl", "shr", *COMPARISONS),
)
_BOOL_BINARY = ("and", "or", "xor", "min", "max", "add", "mul", *COMPARISONS)
_FLOAT_CALLS = ("abs", "sqrt", "floor", "ceil", "trunc", "round_even", "isnan", "copysign", "fma")


def awkward(dtype: DType) -> np.ndarray:
    """Values at which something could go wrong."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.is_float:
        info = ml_dtypes.finfo(dtype.numpy)
        ends = [float(info.max), float(info.min), float(info.smallest_subnormal)]
        ends += [float(info.smallest_normal), -float(info.smallest_subnormal)]
        plain = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 2.7, -3.3, 100.25, 300.0, -129.0, 1 / 3]
        return np.array([*plain, *ends, np.nan, np.inf, -np.inf]).astype(dtype.numpy)
    low = np.iinfo(dtype.numpy).min
    high = np.iinfo(dtype.numpy).max
    values = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 63, 100, dtype.bits, dtype.bits - 1}
    values |= {-1, -2, -3, -100} if dtype.kind == "int" else {200}
    values |= {2**53 + 1, -(2**53) - 1, 2**24 + 1, 65519, 65520, 2**60 + 2**36 + 1}
    return np.array(sorted(v for v in values if low <= v <= high), dtype.numpy)


def pairs(dtype: DType, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of awkward values, repeated to fill whole vectors."""
    combined = list(itertools.product(awkward(dtype), repeat=2))
    combined += combined[: -len(combined) % lanes]
    left, right = zip(*combined, strict=True)
    return np.array(left, dtype.numpy), np.array(right, dtype.numpy)


def binaries(dtype: DType, a: Expr, b: Expr) -> list[Expr]:
    names = _BOOL_BINARY if dtype == BOOL else _FLOAT_BINARY if dtype.is_float else _INT_BINARY
    found: list[Expr] = [Binary(op, a, b) for op in names]
    if dtype.is_integer:
        limit = 1 << (dtype.bits - 1)
        constants = [c for c in (0, 1, 3, -1, -5, limit - 1) if c >= 0 or dtype.kind == "int"]
        found += [
            Binary(op, a, const(c, dtype))
            for c in constants
            for op in ("div", "floordiv", "mod", "rem", "shl", "shr")
        ]
    return found


def unaries(dtype: DType, a: Expr, b: Expr) -> list[Expr]:
    found: list[Expr] = [] if dtype == BOOL else [Unary("neg", a)]
    if not dtype.is_float:
        found.append(Unary("not", a))
    if dtype.is_float:
        found += [call(fn, *(a, b, a)[: _arity(fn)]) for fn in _FLOAT_CALLS]
    elif dtype != BOOL:
        found.append(call("abs", a))
    same = [d for d in DTYPES if d.bits == dtype.bits and BOOL not in (d, dtype)]
    return [*found, *(Bitcast(d, a) for d in same)]


def _arity(fn: str) -> int:
    return {"copysign": 2, "fma": 3}.get(fn, 1)


def choices(dtype: DType, a: Expr, b: Expr, lanes: int) -> list[Expr]:
    """Selects with vector and scalar conditions and operands, constants, single lanes."""
    literal = Const(True, BOOL) if dtype == BOOL else const(1, dtype)
    whole = literal if lanes == 1 else Broadcast(literal, lanes)
    lane = Lane(Load("y", (Ramp(const(0), 1, 4),), dtype), 3)
    return [
        lane,
        Select(Binary("ne", a, lane), lane, b),
        Select(Binary("lt", a, b), a, b),
        Select(Binary("lt", Var("i"), Const(2)), a, whole),
        Select(Binary("ne", a, whole), whole, b),
    ]


def casts(dtype: DType, a: Expr) -> list[Expr]:
    return [Cast(d, a) for d in DTYPES if d != dtype]


def at(buffer: str, dtype: DType, lanes: int) -> Load:
    return Load(buffer, (index(lanes),), dtype)


def index(lanes: int) -> Expr:
    return Var("i") if lanes == 1 else Ramp(Var("i") * lanes, 1, lanes)


def store_all(exprs: list[Expr], dtype: DType, count: int, lanes: int) -> Func:
    """A function that stores each expression over `x` and `y` into an output of its own."""
    size = (const(count),)
    outputs = [Buffer(f"o{n}", e.dtype, size) for n, e in enumerate(exprs)]
    stores = [Store(b.name, (index(lanes),), e) for b, e in zip(outputs, exprs, strict=True)]
    body = For("i", const(count // lanes), "serial", Seq(tuple(stores)))
    params = (Buffer("x", dtype, size), Buffer("y", dtype, size), *outputs)
    return Func(f"all_{dtype}_{lanes}", params, tuple(b.name for b in outputs), body)


def outputs_of(func: Func) -> dict[str, np.ndarray]:
    """Arrays for the outputs, holding something that must be overwritten."""
    shapes = {p.name: p for p in func.params if p.name in func.outputs}
    return {
        name: np.full([int(d.value) for d in p.shape], 77).astype(p.dtype.numpy)
        for name, p in shapes.items()
        if all(isinstance(d, Const) for d in p.shape)
    }


def has_fma(e: Expr) -> bool:
    return isinstance(e, Call) and e.fn == "fma"
