"""Expressions → LLVM instructions, one emitting function a node class.

Floating-point operations carry `contract` (a multiply and an add may become one fma) and no other
fast-math flag: NaN, infinities, signed zeros and denormals follow IEEE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.arith.bounds import Interval, bound
from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Ramp,
    Select,
    Unary,
    Var,
)
from tilewright.arith.walk import loads
from tilewright.codegen.function import FunctionText
from tilewright.codegen.memory import emit_load
from tilewright.codegen.types import (
    intrinsic_suffix,
    literal,
    memory_type,
    register_type,
    splat,
)
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.core.errors import CodegenError

FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
INT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "shl": "shl"}
COMPARE = {"lt": "lt", "le": "le", "eq": "eq", "ne": "ne"}
INTRINSIC_CALLS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_even": "roundeven",
    "abs": "fabs",
    "fma": "fma",
    "copysign": "copysign",
}


class ExprEmitter:
    """Emits expressions into a function.

    `values` maps variable names to registers, `pointers` buffer names to base pointers, `ranges`
    variable names to their bounds (used to choose unsigned division).
    """

    def __init__(self, fn: FunctionText, values: dict[str, str], pointers: dict[str, str]) -> None:
        self.fn = fn
        self.values = values
        self.pointers = pointers
        self.ranges: dict[str, Interval] = {}
        self.statement: dict[Expr, str] = {}

    def begin_statement(self) -> None:
        """Forget what was loaded: a store in between may have changed it."""
        self.statement = {}

    def value(self, e: Expr) -> str:
        """The register (or literal) that holds `e`."""
        if isinstance(e, Const):
            return literal(e.value, e.dtype)
        found = self.statement.get(e) or self.fn.lookup(e)
        if found is None:
            found = _EMIT[type(e)](self, e)
            pure = next(loads(e), None) is None
            (self.fn.known[-1] if pure else self.statement)[e] = found
        return found

    def vector(self, e: Expr, lanes: int) -> str:
        """`e` as a vector of `lanes`, broadcast if it is a scalar."""
        if lanes == 1 or e.lanes == lanes:
            return self.value(e)
        if isinstance(e, Const):
            return splat(e.value, e.dtype, lanes)
        key = Broadcast(e, lanes)
        return self.value(key)

    def intrinsic(self, name: str, dtype: DType, lanes: int, args: list[str]) -> str:
        """Call an LLVM intrinsic whose operands and result have one type."""
        kind = register_type(dtype, lanes)
        full = f"llvm.{name}.{intrinsic_suffix(dtype, lanes)}"
        self.fn.module.declare(full, f"{kind} ({', '.join([kind] * len(args))})")
        return self.fn.let(f"call {kind} @{full}({', '.join(f'{kind} {a}' for a in args)})")

    def element_pointer(self, buffer: str, dtype: DType, index: Expr) -> str:
        """The address of one element."""
        return self.fn.let(
            f"getelementptr inbounds {memory_type(dtype)}, ptr {self.pointers[buffer]}, "
            f"i64 {self.value(index)}",
            "p",
        )

    def to_register(self, memory: str, dtype: DType, lanes: int) -> str:
        """A value as loaded from memory, in its register type."""
        if dtype != BOOL:
            return memory
        return self.fn.let(f"trunc {memory_type(dtype, lanes)} {memory} to {register_type(dtype, lanes)}")

    def to_memory(self, value: str, dtype: DType, lanes: int) -> str:
        """A value in the type it has in memory."""
        if dtype != BOOL:
            return value
        return self.fn.let(f"zext {register_type(dtype, lanes)} {value} to {memory_type(dtype, lanes)}")

    def lane(self, vector: str, kind: str, lane: int) -> str:
        """One element of a vector."""
        return self.fn.let(f"extractelement {kind} {vector}, i64 {lane}")

    def nonnegative(self, e: Expr) -> bool:
        """Whether `e` is known never to be negative."""
        low = bound(e, self.ranges).lo
        return low is not None and low >= 0


def _binary(em: ExprEmitter, e: Binary) -> str:
    lanes, dtype = e.lanes, e.a.dtype
    a, b = em.vector(e.a, lanes), em.vector(e.b, lanes)
    kind = register_type(dtype, lanes)
    if e.op in COMPARE:
        return em.fn.let(f"{_comparison(e.op, dtype)} {kind} {a}, {b}")
    if dtype.is_float and e.op in FLOAT_OPS:
        flag = "contract " if e.op in ("add", "sub", "mul") else ""
        return em.fn.let(f"{FLOAT_OPS[e.op]} {flag}{kind} {a}, {b}")
    if e.op in ("min", "max"):
        return _extremum(em, e, a, b)
    if not dtype.is_float and e.op in INT_OPS:
        flag = "nsw " if dtype == I64 and e.op in ("add", "sub", "mul") else ""
        return em.fn.let(f"{INT_OPS[e.op]} {flag}{kind} {a}, {b}")
    if not dtype.is_float:
        return _integer_division(em, e, a, b)
    raise CodegenError("codegen.operator", f"no instruction for {e.op} on {dtype}")


def _comparison(op: str, dtype: DType) -> str:
    if dtype.is_float:
        return f"fcmp {'une' if op == 'ne' else 'o' + COMPARE[op]}"
    sign = "" if op in ("eq", "ne") else ("s" if dtype.kind == "int" else "u")
    return f"icmp {sign}{COMPARE[op]}"


def _extremum(em: ExprEmitter, e: Binary, a: str, b: str) -> str:
    if e.dtype.is_float:
        return em.intrinsic("minimum" if e.op == "min" else "maximum", e.dtype, e.lanes, [a, b])
    if e.dtype == BOOL:
        kind = register_type(BOOL, e.lanes)
        return em.fn.let(f"{'and' if e.op == 'min' else 'or'} {kind} {a}, {b}")
    return em.intrinsic(("s" if e.dtype.kind == "int" else "u") + e.op, e.dtype, e.lanes, [a, b])


def _integer_division(em: ExprEmitter, e: Binary, a: str, b: str) -> str:
    kind = register_type(e.dtype, e.lanes)
    signed = e.dtype.kind == "int"
    if e.op == "shr":
        return em.fn.let(f"{'ashr' if signed else 'lshr'} {kind} {a}, {b}")
    if signed and em.nonnegative(e.a) and em.nonnegative(e.b):
        signed = False
    if not signed:
        return em.fn.let(f"{'udiv' if e.op in ('div', 'floordiv') else 'urem'} {kind} {a}, {b}")
    if e.op in ("div", "rem"):
        return em.fn.let(f"s{e.op} {kind} {a}, {b}")
    return _floor_division(em, e, kind, a, b)


def _floor_division(em: ExprEmitter, e: Binary, kind: str, a: str, b: str) -> str:
    """Round toward minus infinity: correct the truncated result where the signs differ."""
    let = em.fn.let
    flags = register_type(BOOL, e.lanes)
    zero = splat(0, e.dtype, e.lanes)
    remainder = let(f"srem {kind} {a}, {b}")
    inexact = let(f"icmp ne {kind} {remainder}, {zero}")
    opposite = let(f"icmp slt {kind} {let(f'xor {kind} {remainder}, {b}')}, {zero}")
    correct = let(f"and {flags} {inexact}, {opposite}")
    if e.op == "mod":
        shifted = let(f"add {kind} {remainder}, {b}")
        return let(f"select {flags} {correct}, {kind} {shifted}, {kind} {remainder}")
    quotient = let(f"sdiv {kind} {a}, {b}")
    less = let(f"add {kind} {quotient}, {splat(-1, e.dtype, e.lanes)}")
    return let(f"select {flags} {correct}, {kind} {less}, {kind} {quotient}")


def _unary(em: ExprEmitter, e: Unary) -> str:
    kind, a = register_type(e.dtype, e.lanes), em.value(e.a)
    if e.op == "not":
        return em.fn.let(f"xor {kind} {a}, {splat(e.dtype == BOOL or -1, e.dtype, e.lanes)}")
    if e.dtype.is_float:
        return em.fn.let(f"fneg {kind} {a}")
    return em.fn.let(f"sub {kind} {splat(0, e.dtype, e.lanes)}, {a}")


def _call(em: ExprEmitter, e: Call) -> str:
    args = [em.vector(a, e.lanes) for a in e.args]
    dtype = e.args[0].dtype
    if e.fn == "isnan":
        return em.fn.let(f"fcmp uno {register_type(dtype, e.lanes)} {args[0]}, {args[0]}")
    if e.fn == "abs" and not dtype.is_float:
        kind = register_type(dtype, e.lanes)
        name = f"llvm.abs.{intrinsic_suffix(dtype, e.lanes)}"
        em.fn.module.declare(name, f"{kind} ({kind}, i1)")
        return em.fn.let(f"call {kind} @{name}({kind} {args[0]}, i1 false)")
    if e.fn not in INTRINSIC_CALLS:
        raise CodegenError("codegen.function", f"no instruction for {e.fn} on {dtype}")
    return em.intrinsic(INTRINSIC_CALLS[e.fn], dtype, e.lanes, args)


def _cast(em: ExprEmitter, e: Cast) -> str:
    source, target, lanes = e.a.dtype, e.dtype, e.lanes
    a = em.value(e.a)
    old, new = register_type(source, lanes), register_type(target, lanes)
    if target == BOOL:
        compare = "fcmp une" if source.is_float else "icmp ne"
        return em.fn.let(f"{compare} {old} {a}, {splat(0, source, lanes)}")
    if source.is_float and not target.is_float:
        sign = "s" if target.kind == "int" else "u"
        name = (
            f"llvm.fpto{sign}i.sat.{intrinsic_suffix(target, lanes)}"
            f".{intrinsic_suffix(source, lanes)}"
        )
        em.fn.module.declare(name, f"{new} ({old})")
        return em.fn.let(f"call {new} @{name}({old} {a})")
    opcode = _conversion(source, target)
    return a if opcode is None else em.fn.let(f"{opcode} {old} {a} to {new}")


def _conversion(source: DType, target: DType) -> str | None:
    if source.is_float:
        if source.bits == target.bits:
            raise CodegenError("codegen.cast", f"no single conversion from {source} to {target}")
        return "fpext" if source.bits < target.bits else "fptrunc"
    if target.is_float:
        return "sitofp" if source.kind == "int" else "uitofp"
    if source == BOOL:
        return "zext"
    if source.bits == target.bits:
        return None
    if source.bits > target.bits:
        return "trunc"
    return "sext" if source.kind == "int" else "zext"


def _bitcast(em: ExprEmitter, e: Bitcast) -> str:
    old, new = register_type(e.a.dtype, e.lanes), register_type(e.dtype, e.lanes)
    a = em.value(e.a)
    return a if old == new else em.fn.let(f"bitcast {old} {a} to {new}")


def _select(em: ExprEmitter, e: Select) -> str:
    kind = register_type(e.dtype, e.lanes)
    a, b = em.vector(e.a, e.lanes), em.vector(e.b, e.lanes)
    cond = em.value(e.cond)
    return em.fn.let(
        f"select {register_type(BOOL, e.cond.lanes)} {cond}, {kind} {a}, {kind} {b}"
    )


def _ramp(em: ExprEmitter, e: Ramp) -> str:
    kind = register_type(e.dtype, e.count)
    base = em.vector(e.base, e.count)
    steps = ", ".join(f"i64 {lane * e.stride}" for lane in range(e.count))
    return em.fn.let(f"add nsw {kind} {base}, <{steps}>")


def _broadcast(em: ExprEmitter, e: Broadcast) -> str:
    if isinstance(e.a, Const):
        return splat(e.a.value, e.dtype, e.count)
    kind = register_type(e.dtype, e.count)
    first = em.fn.let(
        f"insertelement {kind} poison, {register_type(e.dtype)} {em.value(e.a)}, i64 0"
    )
    return em.fn.let(
        f"shufflevector {kind} {first}, {kind} poison, <{e.count} x i32> zeroinitializer"
    )


def _variable(em: ExprEmitter, e: Var) -> str:
    if e.name not in em.values:
        raise CodegenError("codegen.variable", f"variable {e.name} has no value here")
    return em.values[e.name]


_EMIT: dict[type, Callable[[ExprEmitter, Any], str]] = {
    Var: _variable,
    Binary: _binary,
    Unary: _unary,
    Call: _call,
    Cast: _cast,
    Bitcast: _bitcast,
    Select: _select,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Load: emit_load,
}
