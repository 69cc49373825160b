"""A tensor map: what the engine that copies tiles of a matrix is told of it.

The matrix has elements of 16 bits, one row behind the other; pieces of a tile's rows of 128 bytes
change places in shared memory, as instructions on matrices want them.
"""

from __future__ import annotations

import ctypes
from typing import Any

# Its bytes, and where it begins.
BYTES, ALIGNMENT = 128, 64
# Elements of 16 bits, pieces that change places within 128 bytes, and 256 bytes that come to the L2
# at once.
_BITS16, _SWIZZLED, _PROMOTED = 1, 3, 3
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
    return (
        ctypes.byref(to),
        _BITS16,
        2,
        start,
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(columns * 2),
        (ctypes.c_uint32 * 2)(*reversed(box)),
        (ctypes.c_uint32 * 2)(1, 1),
        0,
        _SWIZZLED,
        _PROMOTED,
        0,
    )
