"""Tensor maps: descriptions of tensors for TMA copies.

They are row-major and dense, with elements of 8 or 16 bits, or of f32 that the copy rounds to TF32.
A row of a tile has 128 bytes, swizzled in shared memory as mma instructions read it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

# The bytes and the alignment of a tensor map.
BYTES, ALIGNMENT = 128, 64
# The element types by their bytes: any of 8 or 16 bits, and TF32.
_KINDS = {1: 0, 2: 1, 4: 11}
# 128-byte rows of a tile with 128-byte swizzle, and L2 promotion to 256 bytes.
_ROW, _SWIZZLED, _PROMOTED = 128, 3, 3
_POINTER, _INT, _U32 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
SIGNATURE = (_POINTER, _INT, _U32, _POINTER, *(_POINTER,) * 4, *(_INT,) * 4)
"""The types that `cuTensorMapEncodeTiled` takes."""


def blank() -> ctypes.Array[ctypes.c_char]:
    """Aligned memory for a tensor map."""
    cells = (ctypes.c_char * (BYTES + ALIGNMENT))()
    skipped = -ctypes.addressof(cells) % ALIGNMENT
    return (ctypes.c_char * BYTES).from_buffer(cells, skipped)


def encoding(
    to: ctypes.Array[ctypes.c_char], start: int, shape: Sequence[int], box: Sequence[int]
) -> tuple[Any, ...]:
    """The arguments of `cuTensorMapEncodeTiled`, for which the last dimension comes first."""
    bytes, rank = _ROW // box[-1], len(shape)
    strides = [bytes * math.prod(shape[d:]) for d in range(rank - 1, 0, -1)]
    return (
        ctypes.byref(to),
        _KINDS[bytes],
        rank,
        start,
        (ctypes.c_uint64 * rank)(*reversed(shape)),
        (ctypes.c_uint64 * (rank - 1))(*strides),
        (ctypes.c_uint32 * rank)(*reversed(box)),
        (ctypes.c_uint32 * rank)(*(1,) * rank),
        0,
        _SWIZZLED,
        _PROMOTED,
        0,
    )
