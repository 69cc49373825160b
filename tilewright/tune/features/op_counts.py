"""How much arithmetic of each kind one run of a statement does, indices left out."""

from __future__ import annotations

from tilewright.arith.expr import Binary, Call, Cast, Expr, Load, Select
from tilewright.arith.operators import CHEAP_CALLS, COMPARISONS, DIVISIONS
from tilewright.arith.walk import operands

# add and mul are those that do not make an fma; choice: comparisons, minima, maxima, selections;
# root: instructions that take long; math: functions that are expanded; int: all of integers.
KINDS = ("fma", "add", "mul", "div", "choice", "root", "math", "cast", "int")
FLOPS = {"fma": 2, "add": 1, "mul": 1, "div": 1, "choice": 1, "root": 1, "math": 10}


def operations(value: Expr) -> dict[str, int]:
    """The operations of each kind that computing `value` takes; what occurs twice counts once."""
    counts = dict.fromkeys(KINDS, 0)
    seen: set[Expr] = set()
    left = [value]
    while left:
        e = left.pop()
        if e in seen or isinstance(e, Load):
            continue
        seen.add(e)
        left += operands(e)
        kind = _kind(e)
        if kind == "fma":
            seen.add(_factor(e))  # its product is part of it
            left += operands(_factor(e))
        if kind:
            counts[kind] += 1
    return counts


def _kind(e: Expr) -> str:
    if isinstance(e, Binary):
        return _binary_kind(e)
    if isinstance(e, Call):
        if e.fn == "fma":
            return "fma"
        return "choice" if e.fn in CHEAP_CALLS else "root" if e.fn in ("sqrt", "rsqrt") else "math"
    if isinstance(e, Select):
        return "choice"
    return "cast" if isinstance(e, Cast) else ""


def _binary_kind(e: Binary) -> str:
    if not e.a.dtype.is_float:
        return "int"
    if e.op in ("min", "max") or e.op in COMPARISONS:
        return "choice"
    if e.op in DIVISIONS:
        return "div"
    if e.op == "mul":
        return "mul"
    return "fma" if _is_product(e.a) or _is_product(e.b) else "add"


def _is_product(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "mul"


def _factor(e: Expr) -> Expr:
    if isinstance(e, Call):
        return e
    assert isinstance(e, Binary)
    return e.b if _is_product(e.b) else e.a
