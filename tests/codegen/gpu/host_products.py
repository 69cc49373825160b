"""What instructions on matrices compute, of what all threads that do one together give.

Each function is given the kind of an instruction and what each thread has; it returns what each
gets. Operands of a product that is under way must be the same when it is waited for.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque

import ml_dtypes
import numpy as np

LANES = 32
SHARED_BYTES = 256 * 1024
# Types of operands; of bytes each may have its own.
_NUMPY = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "tf32": np.float32,
    "s8": np.int8,
    "u8": np.uint8,
}
# What describes both operands of the four steps; a left one in registers is there itself, for one
# that threads read there are the addresses of four words, and which two of them come first.
OPERANDS = {
    "n": ["i64", "i64"] * 4,
    "r": ["i32", "i32", "i32", "i32", "i64"] * 4,
    "x": ["i32"] * 5 + ["i64"] * 4,
}


def _read_matrices(kind: str, given: list[int]) -> np.ndarray:
    """For each lane, the pairs that it gets of four matrices whose rows begin at 32 addresses."""
    rows = [(ctypes.c_uint16 * 8).from_address(place) for place in given]
    four = np.array(rows, np.uint16).reshape(4, 8, 8)
    four = four.transpose(0, 2, 1) if kind.endswith("trans") else four
    return four.reshape(4, LANES, 2).transpose(1, 0, 2).copy()


def _multiply(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each lane, its elements of a product; fragments as the instruction has them.

    What a shorter instruction does not have is zero: half of K, and of bytes the lower rows.
    """
    name, _, short = kind[4:].partition(".")
    dtypes, total = _types(name)
    words = np.array(given, np.uint32)
    if short:
        rows, columns = (1, 1) if len(given[0]) == 4 else (2, 1)
        filled = np.zeros((LANES, 10), np.uint32)
        filled[:, :rows] = words[:, :rows]
        filled[:, 4 : 4 + columns] = words[:, rows : rows + columns]
        filled[:, 6 : 6 + 2 * rows] = words[:, rows + columns :]
        return _multiply(f"mma.{name}", list(filled))[:, : 2 * rows]
    each = 4 // np.dtype(dtypes[0]).itemsize
    near = 4 * each
    a = np.zeros((16, 2 * near), total)
    b = np.zeros((2 * near, 8), total)
    sums = words[:, 6:].copy().view(total).reshape(8, 4, 4)
    left, right = (
        _elements(part, t) for part, t in zip((words[:, :4], words[:, 4:6]), dtypes, strict=True)
    )
    for register in range(4):
        rows, columns = register % 2 * 8, register // 2 * near
        a[rows : rows + 8, columns : columns + near] = left[:, :, register].reshape(8, near)
    for register in range(2):
        b[register * near :][:near] = right[:, :, register].reshape(8, near).T
    product = a @ b
    out = np.empty((8, 4, 4), total)
    for register in range(4):
        part = product[register // 2 * 8 : register // 2 * 8 + 8, register % 2 :: 2]
        out[:, :, register] = sums[:, :, register] + part
    return out.reshape(LANES, 4)


def _types(name: str) -> tuple[list[type], type]:
    """The types of both operands and of the sums."""
    words = name.split("_")
    dtypes = [_NUMPY[word] for word in (words[0], words[-1])]
    return dtypes, np.int32 if len(words) > 1 else np.float32


def _elements(words: np.ndarray, dtype: type) -> np.ndarray:
    """What the registers of a warp hold: group, place in it, register, part."""
    wide = np.int32 if np.dtype(dtype).itemsize == 1 else np.float32
    parts = words.copy().view(np.uint8).view(dtype).astype(wide)
    return parts.reshape(8, 4, words.shape[1], -1)


def _multiply_group(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each of 128 threads, its elements of a product of operands that descriptors tell of."""
    _, columns, name, turned, left, held = kind.split(".")
    (dtype, other), kept = _types(name)
    count = int(columns) // 2
    words = np.array(given, np.uint64)
    described = [count + n for n, word in enumerate(OPERANDS[held]) if word == "i64"]
    each = len(described) // 4
    assert (words[:, described] == words[0, described]).all(), "threads must agree"
    base = int(words[0, -1])
    assert base % 1024 == 0
    memory = np.frombuffer((ctypes.c_uint16 * (SHARED_BYTES // 2)).from_address(base), np.uint16)
    total = np.zeros((64, int(columns)), kept)
    for step in range(4):
        *lefts, right = (int(words[0, place]) for place in described[each * step :][:each])
        places = [_places(base, right, int(columns), turned == "1")]
        places += [_places(base, bits, 64, False) for bits in lefts]
        types = (other, *(dtype for _ in lefts))
        y, *x = (memory[p].view(t).astype(kept) for p, t in zip(places, types, strict=True))
        given_rows = words[:, count + 5 * step :] if held == "r" else words[:, count:]
        rows = x[0] if x else _LEFT[held](given_rows, memory, base, step, dtype)
        total += rows @ y.T
        under_way[id(given)].append([(memory, place, memory[place]) for place in places])
    _settle(under_way[id(given)], int(left) if held == "x" else 4 * int(left))
    own = total.reshape(4, 2, 8, int(columns) // 8, 4, 2)  # warp, half, row, block, place, pair
    own = own.transpose(0, 2, 4, 3, 1, 5).reshape(4 * LANES, count)
    return own + words[:, :count].astype(np.uint32).view(kept)


_Read = tuple[np.ndarray, np.ndarray, np.ndarray]


def _settle(under_way: deque[list[_Read]], left: int) -> None:
    """Let all but some products end: what they read is what it was when they began."""
    while len(under_way) > left:
        for memory, place, before in under_way.popleft():
            assert (memory[place] == before).all(), "written before it was read"


def _settle_group(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each of 128 threads, its sums as they are."""
    _settle(under_way[id(given)], 4 * int(kind.split(".")[2]))
    return np.array(given, np.uint64)[:, :-1].astype(np.uint32).view(np.float32)


def _rows(words: np.ndarray, memory: np.ndarray, base: int, step: int, dtype: type) -> np.ndarray:
    """The 64 rows of 16 that four warps have in their registers."""
    halves = words[:, :4].astype(np.uint32).view(np.uint16).reshape(4, 8, 4, 4, 2)
    found = np.empty((4, 2, 8, 2, 4, 2), np.uint16)  # warp, half, row, column block, place, pair
    for part in range(4):
        found[:, part % 2, :, part // 2] = halves[:, :, :, part]
    return found.reshape(64, 16).view(dtype).astype(np.float32)


def _read_rows(
    words: np.ndarray, memory: np.ndarray, base: int, step: int, dtype: type
) -> np.ndarray:
    """The 64 rows of 8 that threads read of an operand that lies across."""
    starts = (words[:, :4].astype(np.uint32) - np.uint32(base & 0xFFFFFFFF)).astype(np.int64)
    read = memory.view(np.uint32)[(starts + step * 1024) // 4].view(np.float32)
    upper = words[:, 4].astype(np.uint32).astype(bool)
    read[upper] = read[upper][:, [2, 3, 0, 1]]
    own = read.reshape(4, 8, 4, 2, 2)  # warp, row, place, second depth, lower half
    return own.transpose(0, 4, 1, 3, 2).reshape(64, 8)


_LEFT = {"r": _rows, "x": _read_rows}


def _places(base: int, bits: int, side: int, turned: bool) -> np.ndarray:
    """Where the rows, or columns, of an operand lie, 16 elements each: of 128 bytes, swizzled."""
    assert bits >> 62 == 1, "swizzled by 128 bytes"
    start = ((bits & 0x3FFF) * 16 - base) % (1 << 18)
    leading, apart = (bits >> 16 & 0x3FFF) * 16, (bits >> 32 & 0x3FFF) * 16
    i, k = np.meshgrid(np.arange(side), np.arange(16), indexing="ij")
    if turned:
        place = start + i // 64 * leading + i % 64 * 2 + k // 8 * apart + k % 8 * 128
    else:
        place = start + i // 8 * apart + i % 8 * 128 + k * 2
    return (place ^ (place >> 7 & 7) << 4) // 2


COMPUTE = {
    "ldmatrix": _read_matrices,
    "mma": _multiply,
    "wgmma": _multiply_group,
    "settle": _settle_group,
}
under_way: dict[int, deque[list[_Read]]] = defaultdict(deque)
