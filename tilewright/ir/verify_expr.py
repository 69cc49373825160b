"""Rules that the expressions and names of every IR obey: operand types, declared buffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import Binary, Bitcast, Call, Expr, Load, Reduce, Select, Unary
from tilewright.arith.operators import BINARY, CALLS, COMBINE
from tilewright.arith.vector import Lane, Shuffle
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import BOOL, I64, DType

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# Names that the grammar of expressions takes for itself.
_RESERVED = ("true", "false", "inf", "nan")

# A buffer as an expression sees it: the type of its elements and its number of dimensions.
Signature = tuple[DType, int]
# The rule of each class of expression.
Checks = Mapping[type, Callable[[Any, Mapping[str, Signature]], None]]


class Fault(Exception):
    """A broken rule, before the verifier that found it adds where: `focus` is the text to mark."""

    def __init__(self, code: str, message: str, focus: str = "", help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.focus = focus
        self.help = help


def check_name(name: str, what: str, taken: set[str]) -> None:
    """Raise a `Fault` unless `name` can be written and is new; add it to `taken`."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        help = "letters, digits, _ and . only, the first one no digit; not true false inf nan"
        raise Fault("name.illegal", f"{name!r} cannot name a {what}", name, help)
    if name in taken:
        raise Fault("name.duplicate", f"the name {name!r} is taken twice", name)
    taken.add(name)


def check_expr(
    root: Expr, buffers: Mapping[str, Signature], seen: set[Expr], checks: Checks | None = None
) -> None:
    """Raise a `Fault` for the first node of `root` that breaks a rule, parents before children.

    Nodes in `seen` were checked before, with all that is in them. `checks` are `EXPR_CHECKS` unless
    an IR has its own.
    """
    checks = EXPR_CHECKS if checks is None else checks
    for e in subexpressions(root, seen):
        check = checks.get(type(e))
        if check is not None:
            check(e, buffers)


def check_dtype(
    e: Expr, wanted: DType, what: str, within: Expr | None = None, after: str = ""
) -> None:
    """Raise a `Fault` unless `e` has the dtype that `what` must have.

    What it marks is the expression `within` which `e` stands, behind the text `after`.
    """
    if e.dtype is not wanted and e.dtype != wanted:
        message = f"{what} must be {wanted}, {e} is {e.dtype}"
        raise Fault("expr.dtype", message, f"{after}{e if within is None else within}")


def check_access(buffer: str, indices: tuple[Expr, ...], buffers: Mapping[str, Signature]) -> None:
    """Raise a `Fault` unless the buffer is declared and the indices fit it."""
    if buffer not in buffers:
        known = ", ".join(buffers) or "none"
        raise Fault("expr.buffer", f"no buffer {buffer!r} here", buffer, f"known: {known}")
    rank = buffers[buffer][1]
    if len(indices) != rank:
        message = f"{buffer!r} has {rank} dimensions, it is indexed with {len(indices)}"
        raise Fault("expr.rank", message, f"{buffer}[")
    for i in indices:
        check_dtype(i, I64, f"an index of {buffer!r}")


def _check_load(e: Load, buffers: Mapping[str, Signature]) -> None:
    check_access(e.buffer, e.indices, buffers)
    if e.dtype != buffers[e.buffer][0]:
        message = f"{e.buffer!r} holds {buffers[e.buffer][0]}, the load {e} says {e.dtype}"
        raise Fault("expr.dtype", message, str(e))
    if e.mask is not None:
        check_dtype(e.mask, BOOL, "a mask")


def _check_binary(e: Binary, _: Mapping[str, Signature]) -> None:
    if e.op not in BINARY:
        raise Fault("expr.operator", f"no operator {e.op!r}", str(e))
    if e.a.dtype != e.b.dtype:
        message = f"operands of {e.op} are {e.a.dtype} and {e.b.dtype}"
        raise Fault("expr.dtype", message, str(e), "convert one of them")
    if e.op in ("and", "or", "xor", "shl", "shr") and e.dtype.is_float:
        raise Fault("expr.dtype", f"{e.op} of {e.dtype}", str(e), "it works on integers and bool")


def _check_unary(e: Unary, _: Mapping[str, Signature]) -> None:
    if e.op not in ("neg", "not"):
        raise Fault("expr.operator", f"no operator {e.op!r}", str(e))
    if (e.op == "not" and e.dtype.is_float) or (e.op == "neg" and e.dtype == BOOL):
        raise Fault("expr.dtype", f"{e.op} of {e.dtype}", str(e))


def _check_call(e: Call, _: Mapping[str, Signature]) -> None:
    if CALLS.get(e.fn) != len(e.args):
        raise Fault("expr.operator", f"no function {e.fn!r} of {len(e.args)} arguments", str(e))
    if len({a.dtype for a in e.args}) != 1:
        types = ", ".join(str(a.dtype) for a in e.args)
        raise Fault("expr.dtype", f"arguments of {e.fn} are {types}", str(e), "convert them")
    wanted = BOOL if e.fn in ("isnan", "isinf") else e.args[0].dtype
    check_dtype(e, wanted, f"the result of {e.fn}")


def _check_select(e: Select, _: Mapping[str, Signature]) -> None:
    check_dtype(e.cond, BOOL, "the condition of a select", e)
    check_dtype(e.b, e.a.dtype, "the second choice of this select", e)


def _check_bitcast(e: Bitcast, _: Mapping[str, Signature]) -> None:
    if e.dtype.bits != e.a.dtype.bits:
        message = f"bits of {e.a.dtype} cannot be read as {e.dtype}: the widths differ"
        raise Fault("expr.dtype", message, str(e))


def _check_reduce(e: Reduce, _: Mapping[str, Signature]) -> None:
    if e.op not in COMBINE:
        raise Fault("expr.operator", f"no reduction {e.op!r}", str(e))
    for axis, extent in e.axes:
        check_dtype(axis, I64, "a reduction axis")
        check_dtype(extent, I64, "the extent of a reduction axis")
    if e.op in ("any", "all"):
        check_dtype(e.body, BOOL, f"the body of {e.op}")


def _check_lane(e: Lane, _: Mapping[str, Signature]) -> None:
    if not 0 <= e.index < e.a.lanes:
        raise Fault("expr.lane", f"{e.a} has {e.a.lanes} lanes, not one numbered {e.index}", str(e))


def _check_shuffle(e: Shuffle, _: Mapping[str, Signature]) -> None:
    if (e.a.dtype, e.a.lanes) != (e.b.dtype, e.b.lanes):
        raise Fault("expr.shuffle", f"{e.a} and {e.b} are not vectors of one type", str(e))
    if not all(0 <= p < 2 * e.a.lanes for p in e.picks):
        raise Fault("expr.shuffle", f"two vectors of {e.a.lanes} have no such elements", str(e))


def _check_index(e: CheckedIndex, _: Mapping[str, Signature]) -> None:
    check_dtype(e.index, I64, "a checked index", e)
    for end in (e.low, e.size):
        check_dtype(end, I64, "a bound of a checked index", e)
    if e.site < 0:
        raise Fault("expr.check", f"no check has the number {e.site}", str(e))


EXPR_CHECKS: Checks = {
    Load: _check_load,
    Binary: _check_binary,
    Unary: _check_unary,
    Call: _check_call,
    Select: _check_select,
    Bitcast: _check_bitcast,
    Reduce: _check_reduce,
    Lane: _check_lane,
    Shuffle: _check_shuffle,
    CheckedIndex: _check_index,
}
