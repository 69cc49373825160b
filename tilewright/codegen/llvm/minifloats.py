"""Conversions between f32 and the floats of 8 bits and fewer → LLVM instructions on vectors.

Widening moves the bits of a code into an f32 of another bias and multiplies by a power of two,
which normalises subnormal numbers as well. Narrowing rounds to the nearest, ties to even: by an
addition to the bits, or below the least normal number by adding a float whose last place is theirs.
What is beyond the greatest number becomes infinity or NaN, whichever the format has, else that
number; a NaN becomes a zero of the other sign in a format that has none (as in `ml_dtypes`).
"""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import register_type, splat
from tilewright.core.dtypes import BOOL, F8E8M0, F32, U32, DType
from tilewright.core.float_formats import E8M0_NAN, FORMATS, FloatFormat

_MANTISSA, _BIAS = 23, 127  # of f32
_INFINITY, _QUIET = 0x7F800000, 0x7FC00000
_SMALLEST_E8M0 = 0x00400000  # 2 to the -127, a subnormal number of f32


class _Words:
    """Operations on vectors of 32-bit words; an operand is a register or a number."""

    def __init__(self, em: ValueEmitter, lanes: int) -> None:
        self.let = em.fn.let
        self.lanes = lanes
        self.kind = register_type(U32, lanes)
        self.single = register_type(F32, lanes)
        self.flags = register_type(BOOL, lanes)

    def of(self, value: str | int) -> str:
        return splat(value, U32, self.lanes) if isinstance(value, int) else value

    def op(self, opcode: str, a: str, b: str | int) -> str:
        return self.let(f"{opcode} {self.kind} {a}, {self.of(b)}")

    def choose(self, condition: str, a: str | int, b: str | int) -> str:
        return self.let(
            f"select {self.flags} {condition}, {self.kind} {self.of(a)}, {self.kind} {self.of(b)}"
        )

    def to_float(self, a: str) -> str:
        return self.let(f"bitcast {self.kind} {a} to {self.single}")

    def from_float(self, a: str) -> str:
        return self.let(f"bitcast {self.single} {a} to {self.kind}")

    def float_op(self, opcode: str, a: str, b: float) -> str:
        right = splat(b, F32, self.lanes)
        return self.from_float(self.let(f"{opcode} {self.single} {self.to_float(a)}, {right}"))


def widen(em: ValueEmitter, a: str, source: DType, lanes: int) -> str:
    """A value of the small type `source` as f32, which is exact."""
    w = _Words(em, lanes)
    code = w.let(f"zext {register_type(source, lanes)} {a} to {w.kind}")
    bits = _widen_power(w, code) if source == F8E8M0 else _widen_format(w, code, FORMATS[source])
    return w.to_float(bits)


def _widen_power(w: _Words, code: str) -> str:
    shifted = w.op("shl", code, _MANTISSA)
    number = w.choose(w.op("icmp eq", code, 0), _SMALLEST_E8M0, shifted)
    return w.choose(w.op("icmp eq", code, E8M0_NAN), _QUIET, number)


def _widen_format(w: _Words, code: str, f: FloatFormat) -> str:
    magnitude = w.op("and", code, f.sign - 1)
    moved = w.op("shl", magnitude, _MANTISSA - f.mantissa)
    number = w.float_op("fmul", moved, 2.0 ** (_BIAS - f.bias))
    if f.special == "ieee":
        is_special = w.op("icmp ugt", magnitude, f.greatest)
        number = w.choose(is_special, w.op("or", moved, _INFINITY), number)
    elif f.special == "fn":
        number = w.choose(w.op("icmp ugt", magnitude, f.greatest), _QUIET, number)
    elif f.special == "fnuz":
        number = w.choose(w.op("icmp eq", code, f.sign), _QUIET, number)
    sign = w.op("shl", w.op("and", code, f.sign), 31 - f.exponent - f.mantissa)
    return w.op("or", number, sign)


def narrow(em: ValueEmitter, a: str, target: DType, lanes: int) -> str:
    """An f32 as a value of the small type `target`."""
    w = _Words(em, lanes)
    bits = w.from_float(a)
    code = _narrow_power(w, bits) if target == F8E8M0 else _narrow_format(w, bits, FORMATS[target])
    return w.let(f"trunc {w.kind} {code} to {register_type(target, lanes)}")


def _narrow_power(w: _Words, bits: str) -> str:
    """To the nearest power of two, halves up; NaN where there is none.

    What lies between the two least powers is rounded up, as in `ml_dtypes` and ONNX's reference.
    """
    normal = w.op("lshr", w.op("add", bits, 1 << (_MANTISSA - 1)), _MANTISSA)
    above = w.op("icmp ugt", bits, _SMALLEST_E8M0)
    tiny = w.let(f"zext {w.flags} {above} to {w.kind}")
    number = w.choose(w.op("icmp ult", bits, 1 << _MANTISSA), tiny, normal)
    number = w.choose(w.op("icmp ugt", bits, _INFINITY), E8M0_NAN, number)
    return w.choose(w.op("icmp eq", bits, 0), E8M0_NAN, number)


def _narrow_format(w: _Words, bits: str, f: FloatFormat) -> str:
    magnitude = w.op("and", bits, 0x7FFFFFFF)
    sign = w.op("and", w.op("lshr", bits, 31 - f.exponent - f.mantissa), f.sign)
    code = _rounded(w, magnitude, f)
    beyond = w.op("icmp ugt", code, f.greatest)
    is_nan = w.op("icmp ugt", magnitude, _INFINITY)
    if f.special == "fnuz":
        signed = w.choose(w.op("icmp eq", code, 0), code, w.op("or", code, sign))
        return w.choose(beyond, f.sign, signed)
    code = w.choose(beyond, f.greatest if f.special == "finite" else f.greatest + 1, code)
    if f.special == "ieee":
        code = w.choose(is_nan, f.greatest + 1 + (1 << (f.mantissa - 1)), code)
    if f.special == "finite":
        code = w.choose(is_nan, f.sign, code)
    return w.op("xor", code, sign)


def _rounded(w: _Words, magnitude: str, f: FloatFormat) -> str:
    """The code of a magnitude as if exponents had no end."""
    dropped = _MANTISSA - f.mantissa
    odd = w.op("and", w.op("lshr", magnitude, dropped), 1)
    raised = w.op("add", w.op("add", magnitude, odd), (1 << (dropped - 1)) - 1)
    normal = w.op("sub", w.op("lshr", raised, dropped), (_BIAS - f.bias) << f.mantissa)
    place = _BIAS + dropped + 1 - f.bias  # the exponent of what has this last place
    shifted = w.float_op("fadd", magnitude, 2.0 ** (place - _BIAS))
    subnormal = w.op("sub", shifted, place << _MANTISSA)
    least = (_BIAS + 1 - f.bias) << _MANTISSA
    return w.choose(w.op("icmp ult", magnitude, least), subnormal, normal)
