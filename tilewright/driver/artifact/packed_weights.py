"""Constants → the bytes that kernels read: packed into the layouts they chose, aligned."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Constant
from tilewright.ir.loop.nodes import Layout
from tilewright.runtime.container import WEIGHT_ALIGNMENT

# Memory of a mapped file is given back after so much of it was read: each time costs a while.
RELEASED_BYTES = 1 << 22
RELEASED_TENSORS = 64


def pack(data: np.ndarray, layout: Layout) -> np.ndarray:
    """`data` rearranged as `layout` says; elements beyond the logical shape are zero."""
    data = data.reshape(_logical(layout))
    blocks = {axis: block for axis, block, _ in layout.parts if block}
    padding = [(0, -size % blocks.get(axis, 1)) for axis, size in enumerate(data.shape)]
    if any(after for _, after in padding):
        data = np.pad(data, padding)
    split: list[int] = []
    position: dict[tuple[int, int], int] = {}
    for axis, size in enumerate(data.shape):
        position[axis, 0] = len(split)
        block = blocks.get(axis)
        split += [size] if block is None else [size // block, block]
        position[axis, 1] = len(split) - 1
    order = [position[axis, part] for axis, _, part in layout.parts]
    return np.ascontiguousarray(data.reshape(split).transpose(order))


def _logical(layout: Layout) -> list[int]:
    """The shape that a constant is packed from."""
    sizes = [as_int(d) for d in layout.logical]
    assert all(n is not None for n in sizes), "a constant has a known shape"
    return [n for n in sizes if n is not None]


class WeightTable:
    """Gives every constant (in each layout it is used in) an offset; packs only when written."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Layout | None], tuple[int, Constant, Layout | None]] = {}
        self.size = 0

    def offset(self, constant: Constant, layout: Layout | None) -> int:
        """The byte offset of a constant in the weights."""
        key = (id(constant.data), layout)
        if key not in self._entries:
            self._entries[key] = (self.size, constant, layout)
            self.size += (
                -(-_packed_bytes(constant.data, layout) // WEIGHT_ALIGNMENT) * WEIGHT_ALIGNMENT
            )
        return self._entries[key][0]

    def items(self) -> Iterator[tuple[int, np.ndarray]]:
        """The tensors with their offsets, made one at a time."""
        read: list[np.ndarray] = []
        for offset, constant, layout in self._entries.values():
            data = constant.data
            yield offset, np.ascontiguousarray(data) if layout is None else pack(data, layout)
            read.append(data)
            if sum(d.nbytes for d in read) >= RELEASED_BYTES or len(read) >= RELEASED_TENSORS:
                _release(read)
                read = []
        _release(read)


def _release(read: Sequence[np.ndarray]) -> None:
    """Give back the memory of mapped model files whose tensors are written."""
    holders = {id(holder): holder for holder in map(_mapped, read) if holder is not None}
    for holder in holders.values():
        if hasattr(mmap, "MADV_DONTNEED"):
            holder.madvise(mmap.MADV_DONTNEED)


def _mapped(data: np.ndarray) -> mmap.mmap | None:
    """The mapped file that an array's bytes lie in."""
    holder: Any = data
    while holder is not None and not isinstance(holder, mmap.mmap):
        holder = getattr(holder, "base", None) if isinstance(holder, np.ndarray) else _owner(holder)
    return holder


def _owner(holder: Any) -> Any:
    return holder.obj if isinstance(holder, memoryview) else None


def _packed_bytes(data: np.ndarray, layout: Layout | None) -> int:
    elements = data.size
    if layout is not None:
        blocks = {axis: block for axis, block, _ in layout.parts if block}
        sizes = enumerate(_logical(layout))
        elements = prod(-(-n // blocks.get(a, 1)) * blocks.get(a, 1) for a, n in sizes)
    return elements * data.dtype.itemsize
