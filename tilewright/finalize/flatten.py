"""Buffers become one-dimensional: `A[i, j]` → `A[i * N + j]`.

Allocations that are not on the stack become parameters: memory that the caller provides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, Load, const, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Region, Stmt, Store, Tile
from tilewright.ir.loop.walk import buffers, map_stmt
from tilewright.ir.types import Shape
from tilewright.schedule.intrin.table import INTRINSICS

Extents = Mapping[str, Expr]


def flatten(func: Func) -> Func:
    """`func` with flat buffers; its workspaces are appended to the parameters."""
    shapes = {name: b.shape for name, b in buffers(func).items()}
    workspaces: list[Buffer] = []
    body = _Flattener(shapes, workspaces).stmt(func.body, {})
    params = tuple(_flat(p) for p in func.params)
    return replace(func, params=(*params, *workspaces), body=body)


def _flat(b: Buffer) -> Buffer:
    return Buffer(b.name, b.dtype, (simplify(product(b.shape)),), b.scope)


class _Flattener:
    def __init__(self, shapes: Mapping[str, Shape], workspaces: list[Buffer]) -> None:
        self.shapes = shapes
        self.workspaces = workspaces

    def stmt(self, s: Stmt, extents: Extents) -> Stmt:
        if isinstance(s, For):
            extents = {**extents, s.name: s.extent}
        if isinstance(s, Alloc):
            body = self.stmt(s.body, extents)
            if s.buffer.scope != "global":
                return Alloc(_flat(s.buffer), body)
            self.workspaces.append(_flat(s.buffer))
            return body
        s = map_stmt(s, lambda c: self.stmt(c, extents), lambda e: self.expr(e, extents))
        if isinstance(s, Tile):
            box = INTRINSICS[s.intrinsic].tma_box if s.intrinsic else None
            place = self.start if box is None or len(box) == 2 else self.of_several
            srcs = tuple(place(r, extents) for r in s.srcs)
            return replace(s, dst=self.start(s.dst, extents), srcs=srcs)
        if isinstance(s, Store):
            index = self.index(s.buffer, s.indices, extents)
            return Store(s.buffer, (index,), s.value, s.mask)
        return s

    def expr(self, e: Expr, extents: Extents) -> Expr:
        def load(x: Expr) -> Expr | None:
            if not isinstance(x, Load):
                return None
            mask = None if x.mask is None else simplify(x.mask, extents)
            return Load(x.buffer, (self.index(x.buffer, x.indices, extents),), x.dtype, mask)

        return rewrite(e, load)

    def start(self, region: Region, extents: Extents) -> Region:
        """A region of a tile as the place where it starts and the elements from row to row.

        The instruction knows its own shape; rows are the first dimension longer than 1.
        """
        first = self.index(region.buffer, [start for start, _ in region.ranges], extents)
        row = next((d for d, (_, n) in enumerate(region.ranges) if n is not const(1)), None)
        apart = () if row is None else self.shapes[region.buffer][row + 1 :]
        return Region(region.buffer, ((first, simplify(product(apart))),))

    def of_several(self, region: Region, extents: Extents) -> Region:
        """A tile of one of several matrices: where it starts in four dimensions, and their sizes.

        They are what comes before the rows, the rows, what comes between rows and columns, and the
        columns: TMA knows the bounds of each.
        """
        shape = self.shapes[region.buffer]
        starts = [start for start, _ in region.ranges]
        row = next(d for d, (_, n) in enumerate(region.ranges) if n is not const(1))
        last = len(shape) - 1
        parts = ((0, row), (row, row + 1), (row + 1, last), (last, last + 1))
        return Region(
            region.buffer,
            tuple(
                (_flat_index(shape[a:b], starts[a:b], extents), simplify(product(shape[a:b])))
                for a, b in parts
            ),
        )

    def index(self, buffer: str, indices: Sequence[Expr], extents: Extents) -> Expr:
        return _flat_index(self.shapes[buffer], indices, extents)


def _flat_index(shape: Shape, indices: Sequence[Expr], extents: Extents) -> Expr:
    flat: Expr = const(0)
    for size, i in zip(shape, indices, strict=True):
        flat = flat * size + i
    return simplify(flat, extents)
