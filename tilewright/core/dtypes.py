"""Element types: one row each, with the NumPy type that stores it."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from tilewright.core.errors import TypeCheckError
from tilewright.core.node import node


@node
class DType:
    """An element type; `kind` is one of `float int uint bool complex string`."""

    name: str
    kind: str
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def numpy(self) -> np.dtype:
        """The NumPy type that stores one element."""
        return _bfloat16() if self.name == "bf16" else _NUMPY[self.name]

    @property
    def bytes(self) -> int:
        """Bytes one element takes in an unpacked buffer."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer (bool is neither)."""
        return self.kind in ("int", "uint")


BOOL = DType("bool", "bool", 8)
I8, I16, I32, I64 = (DType(f"i{n}", "int", n) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{n}", "uint", n) for n in (8, 16, 32, 64))
F16, F32, F64 = (DType(f"f{n}", "float", n) for n in (16, 32, 64))
BF16 = DType("bf16", "float", 16)
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

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128, STRING)
}
_BY_NUMPY = {stored: DTYPES[name] for name, stored in _NUMPY.items() if name != "string"}


@cache
def _bfloat16() -> np.dtype:
    # Imported here: few models have it, and NumPy itself does not.
    import ml_dtypes

    found: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return found


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
    found = BF16 if asked.name == "bfloat16" else _BY_NUMPY.get(asked)
    if found is None:
        raise TypeCheckError(
            "dtype.numpy",
            f"NumPy type {numpy_dtype} has no counterpart",
            help=f"convert to one of {', '.join(DTYPES)}",
        )
    return found
