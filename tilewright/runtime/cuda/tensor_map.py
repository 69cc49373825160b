"""A tensor map: what the engine that copies tiles of a matrix is told of it.

The matrix has elements of 8 or 16 bits, or of f32 that are rounded to tf32 on their way, one row
behind the other; a row of a tile has 128 bytes, whose pieces change places in shared memory, as
instructions on matrices want them.
"""

from __future__ import annotations

import ctypes
from typing import Any

# Its bytes, and where it begins.
BYTES, ALIGNMENT = 128, 64
# The kinds of elements by their bytes: any of 8 or 16 bits, and tf32.
_KINDS = {1: 0, 2: 1, 4: 11}
# Bytes of a row of a tile, pieces that change places in it, and 256 bytes that come to the L2 at
# once.
_ROW, _SWIZZLED, _PROMOTED = 128, 3, 3
_POINTER, _INT, _U32 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
SIGNATURE = (_POINTER, _INT, _U32, _POINTER, *(_POINTER,) * 4, *(_INT,) * 4)
"""The types that `cuTensorMapEncodeTiled` takes."""


def blank() -> ctypes.Array[ctypes.c_char]:
    """Room for one."""
    cells = (ctypes.c_char * (BYTES + ALIGNMENT))()
    skipped = -ctypes.addressof(cells) % ALIGNMENT
    return (ctypes.c_char * BYTES).from_buffer(cells, skipped)


def encoding(
    to: ctypes.Array[ctypes.c_char], start: int, rows: int, columns: int, box: tuple[int, int]
) -> tuple[Any, ...]:
    """The arguments with which the driver writes one: a box has rows and columns too."""
    bytes = _ROW // box[1]
    return (
        ctypes.byref(to),
        _KINDS[bytes],
        2,
        start,
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(columns * bytes),
        (ctypes.c_uint32 * 2)(*reversed(box)),
        (ctypes.c_uint32 * 2)(1, 1),
        0,
        _SWIZZLED,
        _PROMOTED,
        0,
    )
