"""Prefetches of what a loop will load: one for each cache line of its contiguous vectors.

An out-of-order core waits for few loads at a time where many instructions depend on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

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
        em.fn.module.declare(_INTRINSIC, "void (ptr, i32, i32, i32)")
        # Not `inbounds`: it may be past the end.
        pointer = em.fn.let(
            f"getelementptr {memory_type(dtype)}, ptr {em.pointers[buffer]}, "
            f"i64 {em.value(simplify(substitute(place, later)))}",
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


def _is_soon_after(element: Element, other: Element) -> bool:
    """Whether an element is less than a cache line after another, or is that other."""
    buffer, dtype, place = element
    if buffer != other[0]:
        return False
    apart = as_int(simplify(place - other[2]))
    return apart is not None and 0 <= apart * dtype.bytes < LINE_BYTES
