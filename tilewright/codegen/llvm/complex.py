"""Comparisons of complex numbers → LLVM instructions.

In registers a complex number is an integer of its bits: it is moved, chosen and compared, which is
all that models do with it. Real and imaginary parts are compared as floats, so that a negative zero
equals zero and a NaN nothing. Numbers are ordered by their real parts, equal ones by the imaginary
ones, as NumPy does.
"""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import register_type
from tilewright.core.dtypes import BOOL, C64, F32, F64, DType
from tilewright.core.errors import CodegenError

_PART = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}


def emit_complex_comparison(
    em: ValueEmitter, op: str, dtype: DType, lanes: int, a: str, b: str
) -> str:
    """The flags of `a op b`; any other operator than a comparison is refused."""
    if op not in _PART:
        raise CodegenError("codegen.operator", f"no instruction for {op} on {dtype}")
    let, flags = em.fn.let, register_type(BOOL, lanes)
    real = F32 if dtype == C64 else F64
    kind = register_type(real, lanes)
    (are, aim), (bre, bim) = (_parts(em, dtype, real, lanes, v) for v in (a, b))
    imaginary = let(f"fcmp {_PART[op]} {kind} {aim}, {bim}")
    if op == "ne":
        return let(f"or {flags} {imaginary}, {let(f'fcmp une {kind} {are}, {bre}')}")
    last = let(f"and {flags} {imaginary}, {let(f'fcmp oeq {kind} {are}, {bre}')}")
    if op == "eq":
        return last
    return let(f"or {flags} {last}, {let(f'fcmp olt {kind} {are}, {bre}')}")


def _parts(em: ValueEmitter, dtype: DType, real: DType, lanes: int, value: str) -> tuple[str, str]:
    """The real and the imaginary parts."""
    both = register_type(real, 2 * lanes)
    pairs = em.fn.let(f"bitcast {register_type(dtype, lanes)} {value} to {both}")
    if lanes == 1:
        return em.lane(pairs, both, 0), em.lane(pairs, both, 1)
    picks = (", ".join(f"i32 {2 * i + part}" for i in range(lanes)) for part in (0, 1))
    re, im = (
        em.fn.let(f"shufflevector {both} {pairs}, {both} poison, <{lanes} x i32> <{p}>")
        for p in picks
    )
    return re, im
