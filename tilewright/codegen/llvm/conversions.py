"""Conversions between element types → LLVM instructions.

To and from bf16 and smaller floats the bits are computed: LLVM would call functions of a runtime
library that a machine may not have, and the instructions of some processors flush denormals (where
the user has allowed bf16 they are used). Narrowing f64 to a float of 16 bits or fewer goes through
f32 *rounded to odd*, so that the second rounding is the only one.
"""

from __future__ import annotations

from tilewright.arith.dtype_limits import highest, lowest
from tilewright.arith.expr import Cast
from tilewright.codegen.llvm.complex import emit_complex_comparison
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.minifloats import narrow, widen
from tilewright.codegen.llvm.types import bfloat_type, intrinsic_suffix, register_type, splat
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I32, U32, DType
from tilewright.core.errors import CodegenError

# Elements that the instruction of x86 narrows to bf16.
X86_NARROWED = 16


def emit_cast(em: ValueEmitter, e: Cast) -> str:
    """The register that holds the converted value."""
    return convert(em, em.value(e.a), e.a.dtype, e.dtype, e.lanes)


def convert(em: ValueEmitter, a: str, source: DType, target: DType, lanes: int) -> str:
    """A value of `source` as one of `target`."""
    middle = _by_way_of(source, target)
    if middle is not None:
        return convert(em, convert(em, a, source, middle, lanes), middle, target, lanes)
    if target == BOOL:
        return _truth(em, a, source, lanes)
    if "complex" in (source.kind, target.kind):
        raise CodegenError("codegen.operator", f"no conversion from {source} to {target}")
    if source.is_storage:
        return _widen(em, a, source, lanes)
    if target.is_storage and source == F32:
        return _narrow(em, a, target, lanes)
    if source == F64 and target.bits <= 16 and target.is_float:
        return convert(em, _round_to_odd(em, a, lanes), F32, target, lanes)
    if source.is_float and not target.is_float:
        return _saturate(em, a, source, target, lanes)
    return _convert_at_once(em, a, source, target, lanes)


def _by_way_of(source: DType, target: DType) -> DType | None:
    """The type in between where there is no conversion at once: bf16 and below convert to f32 only.

    From f16 to integers too: on x86 with AVX512-FP16, LLVM's saturating conversion of NaN is wrong.
    """
    if source.is_storage and target != F32:
        return F32
    if source == F16 and not target.is_float and target != BOOL:
        return F32
    if target.is_storage and source not in (F32, F64):
        return F32
    return None


def _truth(em: ValueEmitter, a: str, source: DType, lanes: int) -> str:
    zero = splat(0, source, lanes)
    if source.kind == "complex":
        return emit_complex_comparison(em, "ne", source, lanes, a, zero)
    compare = "fcmp une" if source.is_float else "icmp ne"
    return em.fn.let(f"{compare} {register_type(source, lanes)} {a}, {zero}")


def _widen(em: ValueEmitter, a: str, source: DType, lanes: int) -> str:
    return _widen_bf16(em, a, lanes) if source == BF16 else widen(em, a, source, lanes)


def _narrow(em: ValueEmitter, a: str, target: DType, lanes: int) -> str:
    return _narrow_bf16(em, a, lanes) if target == BF16 else narrow(em, a, target, lanes)


def _saturate(em: ValueEmitter, a: str, source: DType, target: DType, lanes: int) -> str:
    if target.is_small:
        # Machines have no such conversion: what LLVM makes of it is seldom used, so not relied on.
        wide = _saturate(em, a, source, I32, lanes)
        for name, end in (("smax", lowest(target)), ("smin", highest(target))):
            wide = em.intrinsic(name, I32, lanes, [wide, splat(end.value, I32, lanes)])
        return _convert_at_once(em, wide, I32, target, lanes)
    old, new = register_type(source, lanes), register_type(target, lanes)
    sign = "s" if target.kind == "int" else "u"
    suffixes = f"{intrinsic_suffix(target, lanes)}.{intrinsic_suffix(source, lanes)}"
    name = f"llvm.fpto{sign}i.sat.{suffixes}"
    em.fn.module.declare(name, f"{new} ({old})")
    return em.fn.let(f"call {new} @{name}({old} {a})")


def _convert_at_once(em: ValueEmitter, a: str, source: DType, target: DType, lanes: int) -> str:
    opcode = _opcode(source, target)
    if opcode is None:
        return a
    old, new = register_type(source, lanes), register_type(target, lanes)
    return em.fn.let(f"{opcode} {old} {a} to {new}")


def _opcode(source: DType, target: DType) -> str | None:
    """The conversion instruction, `None` where the bits stay as they are."""
    if source.is_float:
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


def _widen_bf16(em: ValueEmitter, a: str, lanes: int) -> str:
    """The bits of a bf16 are the upper half of those of the equal f32."""
    let, half, word = em.fn.let, register_type(BF16, lanes), register_type(U32, lanes)
    upper = let(f"shl {word} {let(f'zext {half} {a} to {word}')}, {splat(16, U32, lanes)}")
    return let(f"bitcast {word} {upper} to {register_type(F32, lanes)}")


def _narrow_bf16(em: ValueEmitter, a: str, lanes: int) -> str:
    """Round to the nearest, ties to even, by an addition to the bits; a NaN stays one."""
    native = em.fn.module.native_bf16
    if native == "x86_64" and lanes % X86_NARROWED == 0:
        return _narrow_x86(em, a, lanes)
    if native and native != "x86_64":
        old, new = register_type(F32, lanes), bfloat_type(lanes)
        return bfloat_bits(em, em.fn.let(f"fptrunc {old} {a} to {new}"), lanes)
    let, word, single = em.fn.let, register_type(U32, lanes), register_type(F32, lanes)
    half, sixteen = register_type(BF16, lanes), splat(16, U32, lanes)
    bits = let(f"bitcast {single} {a} to {word}")
    upper = let(f"lshr {word} {bits}, {sixteen}")
    odd = let(f"and {word} {upper}, {splat(1, U32, lanes)}")
    bias = let(f"add {word} {odd}, {splat(0x7FFF, U32, lanes)}")
    rounded = let(f"lshr {word} {let(f'add {word} {bits}, {bias}')}, {sixteen}")
    quiet = let(f"or {word} {upper}, {splat(0x40, U32, lanes)}")
    is_nan = let(f"fcmp uno {single} {a}, {a}")
    chosen = let(f"select {register_type(BOOL, lanes)} {is_nan}, {word} {quiet}, {word} {rounded}")
    return let(f"trunc {word} {chosen} to {half}")


def bfloat_bits(em: ValueEmitter, a: str, lanes: int) -> str:
    """What an instruction gave as a value of bf16."""
    return em.fn.let(f"bitcast {bfloat_type(lanes)} {a} to {register_type(BF16, lanes)}")


def _narrow_x86(em: ValueEmitter, a: str, lanes: int) -> str:
    """By the instruction itself: LLVM dies of its own conversion of a vector that is part zero."""
    if lanes == X86_NARROWED:
        name = f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * lanes}"
        old, new = register_type(F32, lanes), bfloat_type(lanes)
        em.fn.module.declare(name, f"{new} ({old})")
        return bfloat_bits(em, em.fn.let(f"call {new} @{name}({old} {a})"), lanes)
    first = X86_NARROWED * (lanes // X86_NARROWED // 2)
    parts = [
        _narrow_x86(em, _slice(em, a, F32, lanes, start, count), count)
        for start, count in ((0, first), (first, lanes - first))
    ]
    low = _slice(em, parts[0], BF16, first, 0, lanes)
    high = _slice(em, parts[1], BF16, lanes - first, 0, lanes)
    picks = ", ".join(f"i32 {i if i < first else lanes + i - first}" for i in range(lanes))
    kind = register_type(BF16, lanes)
    return em.fn.let(f"shufflevector {kind} {low}, {kind} {high}, <{lanes} x i32> <{picks}>")


def _slice(em: ValueEmitter, a: str, dtype: DType, lanes: int, start: int, count: int) -> str:
    """`count` elements of a vector; those beyond its end are not defined."""
    places = range(start, start + count)
    picks = ", ".join(f"i32 {i}" if i < lanes else "i32 poison" for i in places)
    kind = register_type(dtype, lanes)
    return em.fn.let(f"shufflevector {kind} {a}, {kind} poison, <{count} x i32> <{picks}>")


def _round_to_odd(em: ValueEmitter, a: str, lanes: int) -> str:
    """An f64 as f32, truncated with the last bit set where that loses something."""
    let, word = em.fn.let, register_type(U32, lanes)
    single, double = register_type(F32, lanes), register_type(F64, lanes)
    flags = register_type(BOOL, lanes)
    nearest = let(f"fptrunc {double} {a} to {single}")
    back = let(f"fpext {single} {nearest} to {double}")
    bits = let(f"bitcast {single} {nearest} to {word}")
    greater = let(
        f"fcmp ogt {double} {em.intrinsic('fabs', F64, lanes, [back])}, "
        f"{em.intrinsic('fabs', F64, lanes, [a])}"
    )
    down = let(f"sub {word} {bits}, {let(f'zext {flags} {greater} to {word}')}")
    odd = let(f"or {word} {down}, {splat(1, U32, lanes)}")
    inexact = let(f"fcmp one {double} {back}, {a}")
    chosen = let(f"select {flags} {inexact}, {word} {odd}, {word} {bits}")
    return let(f"bitcast {word} {chosen} to {single}")
