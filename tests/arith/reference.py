"""The obvious meaning of scalar expressions, for comparing rewritten ones with the originals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.arith.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, wrap
from tilewright.arith.operators import BINARY
from tilewright.core.dtypes import BOOL, DType


def _minimum(a: Any, b: Any) -> Any:
    """IEEE's minimum: a NaN operand gives NaN, and -0.0 is below 0.0, which NumPy leaves open."""
    if a == b:
        return a if np.signbit(a) else b
    return np.minimum(a, b)


_FLOAT = {
    **BINARY,
    "div": lambda a, b: a / b,
    "min": _minimum,
    "max": lambda a, b: -_minimum(-a, -b),
}


def stored(value: Any, dtype: DType) -> Any:
    """A number as an element of `dtype`: floats are NumPy's, integers Python's."""
    if dtype.is_float:
        return dtype.numpy.type(value if isinstance(value, np.generic) else float(value))
    return bool(value) if dtype == BOOL else wrap(int(value), dtype)


def meaning(e: Expr, env: Mapping[str, Any]) -> Any:
    """The value of `e`, rounded and wrapped after each operation."""
    with np.errstate(all="ignore"):
        match e:
            case Const(value, dtype):
                return stored(value, dtype)
            case Var(name, dtype):
                return stored(env[name], dtype)
            case Binary(op=op, a=a, b=b):
                table = _FLOAT if a.dtype.is_float else BINARY
                return stored(table[op](meaning(a, env), meaning(b, env)), e.dtype)
            case Unary(op="neg", a=a):
                return stored(-meaning(a, env), e.dtype)
            case Unary(a=a):
                return stored(not meaning(a, env) if e.dtype == BOOL else ~meaning(a, env), e.dtype)
            case Select(cond=cond, a=a, b=b):
                return meaning(a if meaning(cond, env) else b, env)
            case Cast(dtype, a):
                return _convert(meaning(a, env), a.dtype, dtype)
            case Call("abs", (a,)):
                return stored(abs(meaning(a, env)), e.dtype)
    raise AssertionError(f"no meaning for {type(e).__name__}")


def _convert(value: Any, source: DType, target: DType) -> Any:
    if target == BOOL:
        return bool(value != 0)
    if source.is_float and target.is_integer:
        info = np.iinfo(target.numpy)
        return 0 if np.isnan(value) else int(max(min(float(value), info.max), info.min))
    return stored(value, target)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal to the bit; all NaNs are alike."""
    if isinstance(a, np.generic) and isinstance(b, np.generic):
        return bool(np.isnan(a) and np.isnan(b)) or a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b)
