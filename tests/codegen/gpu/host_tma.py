"""TMA copies and mbarriers, simulated on the host.

A tile arrives as late as it may: when the first thread waits for the phase that counts it.
"""

from __future__ import annotations

import ctypes
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import llvmlite.binding as llvm
import numpy as np

from tilewright.codegen.gpu.nvptx import TENSOR_MAP
from tilewright.codegen.gpu.synchronization import MBARRIER_ARRIVE, MBARRIER_TRY_WAIT

TEXT = """
declare void @tw.py.tma_load(ptr, ptr, ptr, i64, i64, i64, i64)
declare void @tw.py.mbarrier_init(ptr, i64)
declare void @tw.py.expect(ptr, i64)
declare void @tw.py.arrived(ptr, i64)
define internal void @tw.leave(ptr %place, i32 %lane) noinline {
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %say, label %done
say:
  call void @tw.py.expect(ptr %place, i64 0)
  br label %done
done:
  ret void
}
define internal void @tw.tma_load(ptr %to, ptr %mbarrier, ptr %map, i32 %x, i32 %y, i16 %a, i64 %b,
                              i1 %c, i1 %d, i32 %e) noinline {
  %wide.x = sext i32 %x to i64
  %wide.y = sext i32 %y to i64
  call void @tw.py.tma_load(ptr %to, ptr %mbarrier, ptr %map, i64 %wide.x, i64 0, i64 %wide.y,
                            i64 0)
  ret void
}
define internal void @tw.tma_load_4(ptr %to, ptr %mbarrier, ptr %map, i32 %x, i32 %i, i32 %y,
                                i32 %o, i16 %a, i64 %b, i1 %c, i1 %d, i32 %e) noinline {
  %wide.x = sext i32 %x to i64
  %wide.i = sext i32 %i to i64
  %wide.y = sext i32 %y to i64
  %wide.o = sext i32 %o to i64
  call void @tw.py.tma_load(ptr %to, ptr %mbarrier, ptr %map, i64 %wide.x, i64 %wide.i, i64 %wide.y,
                            i64 %wide.o)
  ret void
}
define internal void @tw.mbarrier_init(ptr %place, i32 %copies) noinline {
  %n = zext i32 %copies to i64
  call void @tw.py.mbarrier_init(ptr %place, i64 %n)
  ret void
}
define internal i64 @tw.expect(ptr %place, i32 %bytes) noinline {
  %n = zext i32 %bytes to i64
  call void @tw.py.expect(ptr %place, i64 %n)
  ret i64 0
}
define internal void @tw.arrived(ptr %place, i32 %parity) noinline {
  %n = zext i32 %parity to i64
  call void @tw.py.arrived(ptr %place, i64 %n)
  ret void
}
"""
NAMES = {
    "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d": "tw.tma_load",
    "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.4d": "tw.tma_load_4",
    "llvm.nvvm.mbarrier.init.shared": "tw.mbarrier_init",
    "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta": "tw.expect",
}
SECONDS = 60


def tma_text(text: str) -> str:
    """A module whose waits for, and arrivals at, mbarriers are calls."""
    for said, name in ((MBARRIER_TRY_WAIT, "arrived"), (MBARRIER_ARRIVE, "leave")):
        text = re.sub(rf'asm sideeffect "{re.escape(said)}", "[^"]*"', f"@tw.{name}", text)
    return text.replace(TENSOR_MAP, "ptr")


def matrix(start: int, shape: Sequence[int], box: Sequence[int]) -> np.ndarray:
    """What a kernel is given instead of a tensor map: four sizes, of which a matrix has two."""
    sizes = shape if len(shape) == 4 else (1, shape[0], 1, shape[1])
    return np.array([start, *sizes, *(box[n] for n in (-1 - len(box) // 2, -1))], np.int64)


@dataclass
class _Mbarrier:
    """An mbarrier: the copies of a phase, the bytes expected in this one, and its index."""

    copies: int
    phase: int = 0
    expected: list[int] = field(default_factory=list)
    tiles: list[tuple[int, np.ndarray, list[int]]] = field(default_factory=list)

    def complete(self) -> None:
        """Let what was copied arrive."""
        arrived = sum(_bring(*tile) for tile in self.tiles)
        assert arrived == sum(self.expected)
        self.phase, self.expected, self.tiles = self.phase + 1, [], []


_mbarriers: dict[int, _Mbarrier] = {}
_changed = threading.Condition()


def _bring(to: int, about: np.ndarray, at: list[int]) -> int:
    """A tile at its place, zeros where the matrix ends; the bytes that came."""
    start, *shape, high, wide = map(int, about)
    x, inner, y, outer = at
    kind = {128: np.uint8, 64: np.uint16, 32: np.uint32}[wide]
    size = np.dtype(kind).itemsize
    assert to % 1024 == start % 16 == shape[-1] * size % 16 == 0
    held = (ctypes.c_uint8 * (math.prod(shape) * size)).from_address(start)
    source = np.frombuffer(held, kind).reshape(shape)[outer, :, inner]
    tile = np.zeros((high, wide), kind)
    inside = source[y : y + high, x : x + wide]
    tile[: inside.shape[0], : inside.shape[1]] = _rounded(inside) if size == 4 else inside
    memory = np.frombuffer((ctypes.c_uint8 * tile.nbytes).from_address(to), kind)
    place = np.arange(tile.size) * size
    memory[(place ^ (place >> 7 & 7) << 4) // size] = tile.reshape(-1)
    return tile.nbytes


def _rounded(words: np.ndarray) -> np.ndarray:
    """The bits of numbers of f32, to the nearest tf32."""
    return (words + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)


def _on_tma_load(to: int, mbarrier: int, about: int, *at: int) -> None:
    given = np.frombuffer((ctypes.c_int64 * 7).from_address(about), np.int64).copy()
    with _changed:
        _mbarriers[mbarrier].tiles.append((to, given, list(at)))
        _changed.notify_all()


def _on_mbarrier_init(place: int, copies: int) -> None:
    _mbarriers[place] = _Mbarrier(copies)


def _on_expect(place: int, size: int) -> None:
    with _changed:
        _mbarriers[place].expected.append(size)
        assert len(_mbarriers[place].expected) <= _mbarriers[place].copies
        _changed.notify_all()


def _on_arrived(place: int, parity: int) -> None:
    mbarrier = _mbarriers[place]
    with _changed:
        while mbarrier.phase % 2 == parity:
            whole = len(mbarrier.expected) == mbarrier.copies
            if whole and sum(mbarrier.expected) == 128 * sum(int(t[1][5]) for t in mbarrier.tiles):
                mbarrier.complete()
                _changed.notify_all()
            else:
                assert _changed.wait(SECONDS), "copies that nobody started"


_PTR, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_KEPT = {
    "tw.py.tma_load": ctypes.CFUNCTYPE(None, *(_PTR,) * 3, *(_NUMBER,) * 4)(_on_tma_load),
    "tw.py.mbarrier_init": ctypes.CFUNCTYPE(None, _PTR, _NUMBER)(_on_mbarrier_init),
    "tw.py.expect": ctypes.CFUNCTYPE(None, _PTR, _NUMBER)(_on_expect),
    "tw.py.arrived": ctypes.CFUNCTYPE(None, _PTR, _NUMBER)(_on_arrived),
}
for _name, _function in _KEPT.items():
    llvm.add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)
