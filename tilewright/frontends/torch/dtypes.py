"""Element types: torch's and ours."""

from __future__ import annotations

import torch

from tilewright.core.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    DType,
)
from tilewright.core.errors import UnsupportedError

_OURS: dict[torch.dtype, DType] = {
    torch.bool: BOOL,
    torch.int8: I8,
    torch.int16: I16,
    torch.int32: I32,
    torch.int64: I64,
    torch.uint8: U8,
    torch.uint16: U16,
    torch.uint32: U32,
    torch.uint64: U64,
    torch.float16: F16,
    torch.bfloat16: BF16,
    torch.float32: F32,
    torch.float64: F64,
    torch.complex64: C64,
    torch.complex128: C128,
}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


def from_torch(dtype: torch.dtype) -> DType:
    """Our name of an element type."""
    found = _OURS.get(dtype)
    if found is None:
        raise UnsupportedError(
            "torch.dtype",
            f"tensors of {dtype} are not supported",
            help=f"use one of {', '.join(str(d).removeprefix('torch.') for d in _OURS)}",
        )
    return found


def to_torch(dtype: DType) -> torch.dtype:
    """Torch's name of an element type that came from it."""
    return _THEIRS[dtype]


def promoted(*operands: tuple[DType, int] | float | int | bool) -> DType:
    """The type in which torch computes with operands: tensors by type and rank, and numbers."""
    found = torch.result_type(*map(_stand_in, operands))
    return from_torch(found)


def _stand_in(operand: tuple[DType, int] | float | int | bool) -> torch.Tensor | float | int | bool:
    if not isinstance(operand, tuple):
        return operand
    dtype, rank = operand
    return torch.empty((1,) * rank, dtype=to_torch(dtype), device="meta")
