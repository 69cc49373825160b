"""Expressions → LLVM instructions, one emitting function a node class.

Floating-point operations carry `contract` (a multiply and an add may become one fma) and no other
fast-math flag: NaN, infinities, signed zeros and denormals follow IEEE. Arithmetic on bf16 and
smaller floats is done in f32 and rounded, each operation for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    cast,
)
from tilewright.arith.vector import Lane, Ramp, Shuffle
from tilewright.codegen.llvm.complex import emit_complex_comparison
from tilewright.codegen.llvm.conversions import bfloat_bits, emit_cast
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.integers import emit_division, emit_shift
from tilewright.codegen.llvm.loads_stores import emit_load
from tilewright.codegen.llvm.types import (
    bfloat_type,
    intrinsic_suffix,
    register_type,
    splat,
)
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I64, DType
from tilewright.core.errors import CodegenError

FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
INT_OPS = ("add", "sub", "mul", "and", "or", "xor")
# Sums of bools are disjunctions, products conjunctions, as in NumPy.
BOOL_OPS = {"add": "or", "mul": "and"}
COMPARE = {"lt": "lt", "le": "le", "eq": "eq", "ne": "ne"}
EXTREMA = {"min": "minimum", "max": "maximum"}
# What GPUs compute in bf16, without f32.
GPU_BF16 = (*COMPARE, *EXTREMA)
INTRINSIC_CALLS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_even": "roundeven",
    "abs": "fabs",
    "fma": "fma",
    "copysign": "copysign",
    "exp2": "exp2",
    "exp2_ftz": "exp2",
}
# Approximate functions, for which GPUs have an instruction.
APPROXIMATE = ("exp2", "exp2_ftz")
# Functions of one f32 that an architecture has an instruction of its own for.
NATIVE_CALLS = {("nvptx64", "exp2_ftz"): "llvm.nvvm.ex2.approx.ftz.f"}


class ExprEmitter(ValueEmitter):
    """Emits expressions into a function, node by node."""

    def _emit(self, e: Expr) -> str:
        return _EMIT[type(e)](self, e)


def _binary(em: ValueEmitter, e: Binary) -> str:
    lanes, dtype = e.lanes, e.a.dtype
    if dtype == BF16 and em.fn.module.native_bf16 == "nvptx64" and e.op in GPU_BF16:
        return _bf16_operation(em, e)
    if dtype.is_storage:
        return em.value(cast(e.dtype, Binary(e.op, cast(F32, e.a), cast(F32, e.b))))
    a, b = em.vector(e.a, lanes), em.vector(e.b, lanes)
    if dtype.kind == "complex":
        return emit_complex_comparison(em, e.op, dtype, lanes, a, b)
    kind = register_type(dtype, lanes)
    if e.op in COMPARE:
        return em.fn.let(f"{_comparison(e.op, dtype)} {kind} {a}, {b}")
    if e.op in EXTREMA:
        return _extremum(em, e, a, b)
    if dtype.is_float:
        return _float_operation(em, e, kind, a, b)
    return _integer_operation(em, e, kind, a, b)


def _bf16_operation(em: ValueEmitter, e: Binary) -> str:
    """By an instruction for bf16 itself."""
    kind, bits = bfloat_type(e.lanes), register_type(BF16, e.lanes)
    operands = (em.vector(x, e.lanes) for x in (e.a, e.b))
    a, b = (em.fn.let(f"bitcast {bits} {x} to {kind}") for x in operands)
    if e.op in COMPARE:
        return em.fn.let(f"{_comparison(e.op, BF16)} {kind} {a}, {b}")
    vector = f"v{e.lanes}" if e.lanes > 1 else ""
    name = f"llvm.{EXTREMA[e.op]}.{vector}bf16"
    em.fn.module.declare(name, f"{kind} ({kind}, {kind})")
    found = em.fn.let(f"call {_zeros(em)}{kind} @{name}({kind} {b}, {kind} {a})")
    return bfloat_bits(em, found, e.lanes)


def _float_operation(em: ValueEmitter, e: Binary, kind: str, a: str, b: str) -> str:
    if e.op not in FLOAT_OPS:
        raise CodegenError("codegen.operator", f"no instruction for {e.op} on {e.dtype}")
    flag = "contract " if e.op in ("add", "sub", "mul") else ""
    return em.fn.let(f"{FLOAT_OPS[e.op]} {flag}{kind} {a}, {b}")


def _integer_operation(em: ValueEmitter, e: Binary, kind: str, a: str, b: str) -> str:
    if e.op in INT_OPS:
        opcode = BOOL_OPS.get(e.op, e.op) if e.dtype == BOOL else e.op
        # Index arithmetic does not overflow; the elements of tensors wrap.
        is_index = e.dtype == I64 and e.op in ("add", "sub", "mul") and em.is_pure(e)
        return em.fn.let(f"{opcode} {'nsw ' if is_index else ''}{kind} {a}, {b}")
    if e.op in ("shl", "shr"):
        return emit_shift(em, e, a, b)
    return emit_division(em, e, a, b)


def _comparison(op: str, dtype: DType) -> str:
    if dtype.is_float:
        return f"fcmp {'une' if op == 'ne' else 'o' + COMPARE[op]}"
    sign = "" if op in ("eq", "ne") else ("s" if dtype.kind == "int" else "u")
    return f"icmp {sign}{COMPARE[op]}"


def _extremum(em: ValueEmitter, e: Binary, a: str, b: str) -> str:
    if e.dtype.is_float:
        # The result so far goes second: x86 has to look for a NaN in the first operand only, and
        # a chain of extrema does not wait for that.
        return em.intrinsic(EXTREMA[e.op], e.dtype, e.lanes, [b, a], _zeros(em))
    if e.dtype == BOOL:
        kind = register_type(BOOL, e.lanes)
        return em.fn.let(f"{'and' if e.op == 'min' else 'or'} {kind} {a}, {b}")
    return em.intrinsic(("s" if e.dtype.kind == "int" else "u") + e.op, e.dtype, e.lanes, [a, b])


def _zeros(em: ValueEmitter) -> str:
    """The flag of an extremum that may take either of two zeros."""
    return "" if em.fn.module.orders_zeros else "nsz "


def _unary(em: ValueEmitter, e: Unary) -> str:
    if e.dtype.is_storage and e.dtype != BF16:
        return em.value(Cast(e.dtype, Unary(e.op, cast(F32, e.a))))
    kind, a = register_type(e.dtype, e.lanes), em.value(e.a)
    if e.dtype == BF16:
        return em.fn.let(f"xor {kind} {a}, {splat(-0.0, BF16, e.lanes)}")
    if e.op == "not":
        return em.fn.let(f"xor {kind} {a}, {splat(e.dtype == BOOL or -1, e.dtype, e.lanes)}")
    if e.dtype.is_float:
        return em.fn.let(f"fneg {kind} {a}")
    return em.fn.let(f"sub {kind} {splat(0, e.dtype, e.lanes)}, {a}")


def _call(em: ValueEmitter, e: Call) -> str:
    dtype = e.args[0].dtype
    if dtype.is_storage or (dtype == F16 and e.fn == "fma"):
        wide = F64 if e.fn == "fma" else F32
        result = BOOL if e.dtype == BOOL else wide
        return em.value(cast(e.dtype, Call(e.fn, tuple(cast(wide, a) for a in e.args), result)))
    args = [em.vector(a, e.lanes) for a in e.args]
    if e.fn == "isnan":
        return em.fn.let(f"fcmp uno {register_type(dtype, e.lanes)} {args[0]}, {args[0]}")
    if e.fn == "abs" and dtype.kind == "uint":
        return args[0]
    if e.fn == "abs" and dtype.kind == "int":
        kind = register_type(dtype, e.lanes)
        name = f"llvm.abs.{intrinsic_suffix(dtype, e.lanes)}"
        em.fn.module.declare(name, f"{kind} ({kind}, i1)")
        return em.fn.let(f"call {kind} @{name}({kind} {args[0]}, i1 false)")
    if e.fn == "rcp_ftz":
        one, kind = splat(1.0, dtype, e.lanes), register_type(dtype, e.lanes)
        return em.fn.let(f"fdiv afn {kind} {one}, {args[0]}")
    if e.fn not in INTRINSIC_CALLS:
        raise CodegenError("codegen.function", f"no instruction for {e.fn} on {dtype}")
    native = NATIVE_CALLS.get((em.fn.module.native_bf16, e.fn), "")
    if native and dtype == F32 and e.lanes == 1:
        em.fn.module.declare(native, "float (float)")
        return em.fn.let(f"call float @{native}(float {args[0]})")
    flags = "afn " if e.fn in APPROXIMATE else ""
    return em.intrinsic(INTRINSIC_CALLS[e.fn], dtype, e.lanes, args, flags)


def _bitcast(em: ValueEmitter, e: Bitcast) -> str:
    old, new = register_type(e.a.dtype, e.lanes), register_type(e.dtype, e.lanes)
    a = em.value(e.a)
    return a if old == new else em.fn.let(f"bitcast {old} {a} to {new}")


def _select(em: ValueEmitter, e: Select) -> str:
    kind = register_type(e.dtype, e.lanes)
    a, b = em.vector(e.a, e.lanes), em.vector(e.b, e.lanes)
    cond = em.value(e.cond)
    return em.fn.let(f"select {register_type(BOOL, e.cond.lanes)} {cond}, {kind} {a}, {kind} {b}")


def _ramp(em: ValueEmitter, e: Ramp) -> str:
    kind = register_type(e.dtype, e.count)
    base = em.vector(e.base, e.count)
    steps = ", ".join(f"i64 {lane * e.stride}" for lane in range(e.count))
    return em.fn.let(f"add nsw {kind} {base}, <{steps}>")


def _broadcast(em: ValueEmitter, e: Broadcast) -> str:
    if isinstance(e.a, Const):
        return splat(e.a.value, e.dtype, e.count)
    kind = register_type(e.dtype, e.count)
    first = em.fn.let(
        f"insertelement {kind} poison, {register_type(e.dtype)} {em.value(e.a)}, i64 0"
    )
    return em.fn.let(
        f"shufflevector {kind} {first}, {kind} poison, <{e.count} x i32> zeroinitializer"
    )


def _lane(em: ValueEmitter, e: Lane) -> str:
    return em.lane(em.value(e.a), register_type(e.dtype, e.a.lanes), e.index)


def _shuffle(em: ValueEmitter, e: Shuffle) -> str:
    kind = register_type(e.dtype, e.a.lanes)
    picks = ", ".join(f"i32 {p}" for p in e.picks)
    operands = f"{kind} {em.value(e.a)}, {kind} {em.value(e.b)}"
    return em.fn.let(f"shufflevector {operands}, <{e.lanes} x i32> <{picks}>")


def _variable(em: ValueEmitter, e: Var) -> str:
    if e.name not in em.values:
        raise CodegenError("codegen.variable", f"variable {e.name} has no value here")
    return em.values[e.name]


_EMIT: dict[type, Callable[[ValueEmitter, Any], str]] = {
    Var: _variable,
    Binary: _binary,
    Unary: _unary,
    Call: _call,
    Cast: emit_cast,
    Bitcast: _bitcast,
    Select: _select,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Lane: _lane,
    Shuffle: _shuffle,
    Load: emit_load,
}
