"""`transform_layout(buffer, parts)`: block and permute the dimensions of a buffer.

    func @mm(..., B: f32[K, N], ...)          func @mm(..., B: f32[(N + 11) // 12, K, 12], ...)
                                                layout B = pack [K, N] -> [d1 // 12, d0, d1 % 12]
      ... B[vk, vj] ...                 →       ... B[vj // 12, vk, vj % 12] ...

    transform_layout("B", [[1, 12, 0], [0, 0, 0], [1, 12, 1]])

Each part is `[axis, block, place]`: `block` 0 is the whole dimension, otherwise `place` 0 is the
block number and 1 the offset in the block. The caller of a function packs parameters accordingly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, Load, ceildiv, const
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Buffer, Func, Layout, Stmt, Store, Tile
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.dataflow import readers, writers
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import AccessRewriter, Extents

Part = tuple[int, int, int]


def transform_layout(func: Func, buffer: str, parts: Sequence[Sequence[int]]) -> Func:
    """Store a buffer in another layout and rewrite every access to it."""
    known = buffers(func)
    if buffer not in known:
        message = f"function {func.name!r} has no buffer named {buffer!r}"
        raise refuse(func, "transform-layout.buffer", message, help=f"it has {', '.join(known)}")
    old = known[buffer]
    checked = _checked(func, old, parts)
    _check_use(func, buffer)
    known[buffer] = replace(old, shape=tuple(_size(old, part) for part in checked))
    transform = _Transform(checked)
    after = AccessRewriter(buffer, known, transform.load, transform.store).func(func)
    if all(b.name != buffer for b in func.params):
        return after
    params = tuple(known[buffer] if b.name == buffer else b for b in func.params)
    layouts = (*func.layouts, (buffer, Layout(old.shape, checked)))
    return replace(after, params=params, layouts=layouts)


def _checked(func: Func, buffer: Buffer, parts: Sequence[Sequence[int]]) -> tuple[Part, ...]:
    """The parts, which must cover each dimension completely."""
    found: tuple[Part, ...] = tuple((axis, block, place) for axis, block, place in parts)
    by_axis: dict[int, list[tuple[int, int]]] = {}
    for axis, block, place in found:
        by_axis.setdefault(axis, []).append((block, place))
    whole = [(0, 0)]
    complete = set(by_axis) == set(range(len(buffer.shape))) and all(
        pairs == whole or _is_blocked(pairs) for pairs in by_axis.values()
    )
    if not complete:
        message = f"these parts do not make up all of {buffer}"
        help = "give each dimension as [axis, 0, 0], or as [axis, block, 0] and [axis, block, 1]"
        raise refuse(func, "transform-layout.parts", message, help=help)
    return found


def _is_blocked(pairs: list[tuple[int, int]]) -> bool:
    blocks = {block for block, _ in pairs}
    return (
        len(pairs) == 2 and len(blocks) == 1 and min(blocks) > 0 and {p for _, p in pairs} == {0, 1}
    )


def _check_use(func: Func, buffer: str) -> None:
    if buffer in func.outputs:
        message = f"{buffer!r} is an output: its layout is the caller's"
        raise refuse(func, "transform-layout.output", message, help="cache_write it first")
    if any(name == buffer for name, _ in func.layouts):
        raise refuse(func, "transform-layout.twice", f"{buffer!r} has a layout already")
    for spine in (*readers(func, buffer), *writers(func, buffer)):
        if isinstance(spine[-1], Tile):
            message = f"a tile uses {buffer!r}: transform its layout before"
            raise refuse(func, "transform-layout.tile", message, spine[-1])


def _size(buffer: Buffer, part: Part) -> Expr:
    axis, block, place = part
    if block == 0:
        return buffer.shape[axis]
    return const(block) if place else simplify(ceildiv(buffer.shape[axis], block))


class _Transform:
    """Indices in the new layout."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts

    def indices(self, old: Sequence[Expr], extents: Extents) -> tuple[Expr, ...]:
        return tuple(
            self._index(old[axis], block, place, extents) for axis, block, place in self.parts
        )

    def _index(self, index: Expr, block: int, place: int, extents: Extents) -> Expr:
        if block == 0:
            return index
        return simplify(index % block if place else index // block, extents)

    def load(self, load: Load, extents: Extents) -> Expr:
        return Load(load.buffer, self.indices(load.indices, extents), load.dtype, load.mask)

    def store(self, store: Store, extents: Extents) -> Stmt:
        return Store(store.buffer, self.indices(store.indices, extents), store.value, store.mask)
