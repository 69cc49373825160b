"""Integer division and shifts → LLVM instructions, with a value for every operand.

The instructions are undefined for a divisor of 0, for the least integer divided by -1 and for
shifts by as many bits as there are. Here a division by 0 gives 0, the overflowing quotient wraps,
and a shift out of range leaves 0, or the sign bits. Where the operands are known to be in range,
nothing is added.
"""

from __future__ import annotations

from tilewright.arith.expr import Binary, Const, Expr
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import register_type, splat
from tilewright.core.dtypes import BOOL


def emit_shift(em: ValueEmitter, e: Binary, a: str, b: str) -> str:
    """`shl`, or `shr` that fills with the sign of a signed integer."""
    signed = e.dtype.kind == "int"
    opcode = "shl" if e.op == "shl" else ("ashr" if signed else "lshr")
    kind = register_type(e.dtype, e.lanes)
    if isinstance(e.b, Const) and 0 <= e.b.value < e.dtype.bits:
        return em.fn.let(f"{opcode} {kind} {a}, {b}")
    flags, zero = register_type(BOOL, e.lanes), splat(0, e.dtype, e.lanes)
    inside = em.fn.let(f"icmp ult {kind} {b}, {splat(e.dtype.bits, e.dtype, e.lanes)}")
    last = splat(e.dtype.bits - 1, e.dtype, e.lanes)
    amount = em.fn.let(f"select {flags} {inside}, {kind} {b}, {kind} {last}")
    shifted = em.fn.let(f"{opcode} {kind} {a}, {amount}")
    if opcode == "ashr":
        return shifted
    return em.fn.let(f"select {flags} {inside}, {kind} {shifted}, {kind} {zero}")


def emit_division(em: ValueEmitter, e: Binary, a: str, b: str) -> str:
    """`div`, `rem`, and their forms that round toward minus infinity, `floordiv` and `mod`."""
    quotient = e.op in ("div", "floordiv")
    if e.dtype.kind != "int" or (em.nonnegative(e.a) and em.nonnegative(e.b)):
        return _unsigned(em, e, "udiv" if quotient else "urem", a, b)
    if _divides_safely(e.b):
        return _signed(em, e, a, b)
    return _guarded_signed(em, e, a, b)


def _unsigned(em: ValueEmitter, e: Binary, opcode: str, a: str, b: str) -> str:
    kind = register_type(e.dtype, e.lanes)
    if em.positive(e.b):
        return em.fn.let(f"{opcode} {kind} {a}, {b}")
    by_zero, divisor = _nonzero(em, e, b)
    result = em.fn.let(f"{opcode} {kind} {a}, {divisor}")
    return _select(em, e, by_zero, splat(0, e.dtype, e.lanes), result)


def _divides_safely(divisor: Expr) -> bool:
    return isinstance(divisor, Const) and divisor.value not in (0, -1)


def _nonzero(em: ValueEmitter, e: Binary, b: str) -> tuple[str, str]:
    """Whether `b` is zero, and a divisor that is not."""
    kind = register_type(e.dtype, e.lanes)
    by_zero = em.fn.let(f"icmp eq {kind} {b}, {splat(0, e.dtype, e.lanes)}")
    return by_zero, _select(em, e, by_zero, splat(1, e.dtype, e.lanes), b)


def _select(em: ValueEmitter, e: Binary, condition: str, a: str, b: str) -> str:
    kind, flags = register_type(e.dtype, e.lanes), register_type(BOOL, e.lanes)
    return em.fn.let(f"select {flags} {condition}, {kind} {a}, {kind} {b}")


def _guarded_signed(em: ValueEmitter, e: Binary, a: str, b: str) -> str:
    """Divide by 1 instead of 0 and -1, and put the result for those in its place."""
    kind, zero = register_type(e.dtype, e.lanes), splat(0, e.dtype, e.lanes)
    by_zero, divisor = _nonzero(em, e, b)
    minus = em.fn.let(f"icmp eq {kind} {b}, {splat(-1, e.dtype, e.lanes)}")
    divisor = _select(em, e, minus, splat(1, e.dtype, e.lanes), divisor)
    result = _signed(em, e, a, divisor)
    if e.op in ("rem", "mod"):
        return _select(em, e, by_zero, zero, result)
    result = _select(em, e, minus, em.fn.let(f"sub {kind} {zero}, {a}"), result)
    return _select(em, e, by_zero, zero, result)


def _signed(em: ValueEmitter, e: Binary, a: str, b: str) -> str:
    kind = register_type(e.dtype, e.lanes)
    if e.op in ("div", "rem"):
        return em.fn.let(f"s{e.op} {kind} {a}, {b}")
    return _floor(em, e, kind, a, b)


def _floor(em: ValueEmitter, e: Binary, kind: str, a: str, b: str) -> str:
    """Round toward minus infinity: correct the truncated result where the signs differ."""
    let = em.fn.let
    flags = register_type(BOOL, e.lanes)
    zero = splat(0, e.dtype, e.lanes)
    remainder = let(f"srem {kind} {a}, {b}")
    inexact = let(f"icmp ne {kind} {remainder}, {zero}")
    opposite = let(f"icmp slt {kind} {let(f'xor {kind} {remainder}, {b}')}, {zero}")
    correct = let(f"and {flags} {inexact}, {opposite}")
    if e.op == "mod":
        return _select(em, e, correct, let(f"add {kind} {remainder}, {b}"), remainder)
    quotient = let(f"sdiv {kind} {a}, {b}")
    less = let(f"add {kind} {quotient}, {splat(-1, e.dtype, e.lanes)}")
    return _select(em, e, correct, less, quotient)
