"""Element types: one row each, with the NumPy type that stores it.

An element takes whole bytes in memory: one of 4 bits has a byte, whose upper bits are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tilewright.core.errors import TypeCheckError
from tilewright.core.node import Interned


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DType(metaclass=Interned):
    """An element type; `kind` is one of `float int uint bool complex string`."""

    name: str
    kind: str
    bits: int

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.name, self.kind, self.bits)  # a copy is the same object

    def __str__(self) -> str:
        return self.name

    @property
    def numpy(self) -> np.dtype:
        """The NumPy type that stores one element."""
        return _extension(self.name) if self.name in _EXTENSIONS else _NUMPY[self.name]

    @property
    def bytes(self) -> int:
        """Bytes one element takes in an unpacked buffer."""
        return max(1, self.bits // 8)

    @property
    def alignment(self) -> int:
        """What the address of an element is a multiple of; a complex number is two floats."""
        return self.bytes // 2 if self.kind == "complex" else self.bytes

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point."""
        return self.kind == "float"

    @property
    def is_storage(self) -> bool:
        """Whether it is a float that is only stored: computed in f32, each operation rounded."""
        return self.is_float and self.name in _EXTENSIONS

    @property
    def is_small(self) -> bool:
        """Whether it is a number that is moved, compared and converted, and never computed with."""
        return self.bits < 16 if self.is_float else self.bits < 8

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer (bool is neither)."""
        return self.kind in ("int", "uint")


BOOL = DType("bool", "bool", 8)
I8, I16, I32, I64 = (DType(f"i{n}", "int", n) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{n}", "uint", n) for n in (8, 16, 32, 64))
F16, F32, F64 = (DType(f"f{n}", "float", n) for n in (16, 32, 64))
BF16 = DType("bf16", "float", 16)
F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0 = (
    DType(f"f8{form}", "float", 8) for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0")
)
F6E2M3, F6E3M2 = (DType(f"f6{form}", "float", 6) for form in ("e2m3", "e3m2"))
F4E2M1 = DType("f4e2m1", "float", 4)
# Not `i4` and `u2`, which texts of programs use for variables.
INT4, INT2 = (DType(f"int{n}", "int", n) for n in (4, 2))
UINT4, UINT2 = (DType(f"uint{n}", "uint", n) for n in (4, 2))
C64, C128 = DType("c64", "complex", 64), DType("c128", "complex", 128)
# A text is the number that it has in a table of texts: programs move and compare numbers.
STRING = DType("string", "string", 64)

_NUMPY: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    **{f"f{n}": np.dtype(f"float{n}") for n in (16, 32, 64)},
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
    "string": np.dtype(np.int64),
}

# What NumPy itself does not have: the name in `ml_dtypes`.
_EXTENSIONS = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f6e2m3": "float6_e2m3fn",
    "f6e3m2": "float6_e3m2fn",
    "f4e2m1": "float4_e2m1fn",
    **{f"{sign}int{n}": f"{sign}int{n}" for sign in ("", "u") for n in (4, 2)},
}

FLOATS = (F16, BF16, F32, F64)
SMALL_FLOATS = (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F6E2M3, F6E3M2, F4E2M1)
INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
SMALL_INTEGERS = (INT4, INT2, UINT4, UINT2)
DTYPES: dict[str, DType] = {
    d.name: d for d in (BOOL, *INTEGERS, *SMALL_INTEGERS, *FLOATS, *SMALL_FLOATS, C64, C128, STRING)
}
_BY_NUMPY = {stored: DTYPES[name] for name, stored in _NUMPY.items() if name != "string"}
_BY_EXTENSION = {stored: DTYPES[name] for name, stored in _EXTENSIONS.items()}


@cache
def _extension(name: str) -> np.dtype:
    # Imported here: few models have these types.
    import ml_dtypes

    found: np.dtype = np.dtype(getattr(ml_dtypes, _EXTENSIONS[name]))
    return found


def literal_value(value: float, dtype: DType) -> Any:
    """A float literal as NumPy stores it; where there is no 0, zeros of its bytes stand for it."""
    if dtype == F8E8M0 and value == 0:
        return np.zeros((), dtype.numpy)[()]
    return np.asarray(value).astype(dtype.numpy)[()]


def dtype(name: str) -> DType:
    """The element type called `name`."""
    if name not in DTYPES:
        raise TypeCheckError(
            "dtype.unknown", f"no element type {name!r}", help=f"one of {', '.join(DTYPES)}"
        )
    return DTYPES[name]


@lru_cache(maxsize=256)
def from_numpy(numpy_dtype: np.dtype) -> DType:
    """The element type that `numpy_dtype` stores."""
    asked = np.dtype(numpy_dtype)
    if asked.kind in "OU":
        return STRING
    found = _BY_NUMPY.get(asked) or _BY_EXTENSION.get(asked.name)
    if found is None:
        raise TypeCheckError(
            "dtype.numpy",
            f"NumPy type {numpy_dtype} has no counterpart",
            help=f"convert to one of {', '.join(DTYPES)}",
        )
    return found
