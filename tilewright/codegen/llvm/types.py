"""How element types and literals are spelled in LLVM IR.

A value has a register type (`i1` for bool) and a memory type (`i8` for bool). Small floats, bf16
and complex numbers are integers of their bits; what has fewer than 8 has a byte in memory. LLVM's
`bfloat` is for the operands of a machine's instructions alone (`bfloat_type`): to compare or move
one on x86, LLVM may round f32 by an instruction that makes zeros of subnormal numbers, or call a
function that the machine may not have.
"""

from __future__ import annotations

import struct

import numpy as np

from tilewright.core.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    DType,
    literal_value,
)
from tilewright.core.errors import CodegenError

_REGISTER = {
    "bool": "i1",
    "f16": "half",
    "f32": "float",
    "f64": "double",
    "string": "i64",
    **{f"{s}{n}": f"i{n}" for s in "iu" for n in (8, 16, 32, 64)},
    **{d.name: f"i{d.bits}" for d in (*SMALL_FLOATS, *SMALL_INTEGERS, BF16, C64, C128)},
}
_FLOATS = ("half", "float", "double")


def register_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value in a register."""
    if dtype.name not in _REGISTER:
        raise CodegenError(
            "codegen.dtype",
            f"no machine type for {dtype}",
            help=f"supported: {', '.join(_REGISTER)}",
        )
    scalar = _REGISTER[dtype.name]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def bfloat_type(lanes: int = 1) -> str:
    """The LLVM type of the operands of a machine's own instructions for bf16."""
    return "bfloat" if lanes == 1 else f"<{lanes} x bfloat>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value in memory."""
    scalar = "i8" if is_widened(dtype) else register_type(dtype)
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def is_widened(dtype: DType) -> bool:
    """Whether a value has more bits in memory than in a register."""
    return dtype == BOOL or dtype.bits < 8


def intrinsic_suffix(dtype: DType, lanes: int = 1) -> str:
    """The type suffix in an intrinsic's name: `f32`, `v4f32`, `i64`."""
    register = register_type(dtype)
    name = dtype.name if register in _FLOATS else register
    return name if lanes == 1 else f"v{lanes}{name}"


def literal(value: int | float | bool, dtype: DType) -> str:
    """A scalar literal; floats by bit pattern, so that every value is exact."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.name in ("f32", "f64"):
        # LLVM writes an f32 literal as the f64 of equal value.
        wide = float(np.float32(value)) if dtype.name == "f32" else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"
    if dtype.name == "f16":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype == BF16:
        return str(int(literal_value(value, dtype).view(np.uint16)))
    if dtype.is_float:
        return str(int(literal_value(value, dtype).view(np.uint8)))
    return str(int(value))


def splat(value: int | float | bool, dtype: DType, lanes: int) -> str:
    """A literal repeated over `lanes`."""
    scalar = literal(value, dtype)
    if lanes == 1:
        return scalar
    return f"splat ({register_type(dtype)} {scalar})"
