"""Prefetches of what a loop will load, and of the rows behind those that it loads.

Of contiguous vectors there is one for each cache line, some iterations before its use: an
out-of-order core waits for few loads at a time where many instructions depend on each of them. A
tile's rows that lie one after another in memory are no stream for the core's own prefetcher, which
meets them all at once: each iteration prefetches an equal part of the same number of rows behind
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Expr, Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import free_vars, substitute
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import memory_type
from tilewright.core.dtypes import DType
from tilewright.ir.loop.annotations import PREFETCH
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.walk import accesses
from tilewright.target.cpu import LINE_BYTES

# An element of a buffer: the buffer, its type and the index.
Element = tuple[str, DType, Expr]

_INTRINSIC = "llvm.prefetch.p0"
# To be read, kept in all caches, data.
_KIND = "i32 0, i32 3, i32 1"


def emit_prefetches(em: ValueEmitter, loop: For) -> None:
    """Prefetch what the loop loads some iterations later; past its end that does nothing."""
    later = {loop.name: Var(loop.name) + PREFETCH.of(loop)}
    for buffer, dtype, place in _lines(loop):
        _prefetch(em, (buffer, dtype, simplify(substitute(place, later))))


def emit_row_prefetches(em: ValueEmitter, loop: For) -> None:
    """Prefetch a part of what follows the rows in memory; past its end that does nothing."""
    for element in behind_rows(loop):
        _prefetch(em, element)


def _prefetch(em: ValueEmitter, element: Element) -> None:
    buffer, dtype, place = element
    em.fn.module.declare(_INTRINSIC, "void (ptr, i32, i32, i32)")
    # Not `inbounds`: it may be past the end.
    pointer = em.fn.let(
        f"getelementptr {memory_type(dtype)}, ptr {em.pointers[buffer]}, i64 {em.value(place)}",
        "p",
    )
    em.fn.emit(f"call void @{_INTRINSIC}(ptr {pointer}, {_KIND})")


def _lines(loop: For) -> Iterator[Element]:
    """Elements in all cache lines that an iteration loads: where its vectors begin, and the ends.

    A vector that is not aligned ends in the line in which the next one begins.
    """
    loads = {
        (load.buffer, load.dtype, index): None
        for load in accesses(loop.body)
        if isinstance(load, Load)
        for index in load.indices
        if isinstance(index, Ramp) and index.stride == 1 and loop.name in free_vars(index.base)
    }
    begins = [(buffer, dtype, index.base) for buffer, dtype, index in loads]
    ends = [(buffer, dtype, index.base + index.count - 1) for buffer, dtype, index in loads]
    kept: list[Element] = []
    for begin in begins:
        if not any(_is_soon_after(begin, other) for other in kept):
            kept.append(begin)
    yield from kept
    yield from (end for end in ends if not any(_is_soon_after(begin, end) for begin in begins))


def behind_rows(loop: For) -> Iterator[Element]:
    """Where an iteration's part begins behind rows that fill memory without gaps."""
    found: dict[tuple[str, DType], dict[Expr, None]] = {}
    for load in accesses(loop.body):
        if isinstance(load, Load) and len(load.indices) == 1:
            (place,) = load.indices
            if not isinstance(place, Ramp) and stride_of(place, loop.name) == 1:
                found.setdefault((load.buffer, load.dtype), {})[place] = None
    for (buffer, dtype), (first, *others) in found.items():
        length, rows = as_int(loop.extent), 1 + len(others)
        apart = [0, *(as_int(simplify(place - first)) for place in others)]
        if rows > 1 and length is not None and apart == [row * length for row in range(rows)]:
            part = {loop.name: Var(loop.name) * rows + rows * length}
            yield buffer, dtype, simplify(substitute(first, part))


def _is_soon_after(element: Element, other: Element) -> bool:
    """Whether an element is less than a cache line after another, or is that other."""
    buffer, dtype, place = element
    if buffer != other[0]:
        return False
    apart = as_int(simplify(place - other[2]))
    return apart is not None and 0 <= apart * dtype.bytes < LINE_BYTES
