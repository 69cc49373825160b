"""Swizzle: operands of mma instructions in shared memory, without bank conflicts.

    T[r * 64 + p * 8 + e]    →    T[(r * 64 + p * 8 + e) ^ (r % 8 * 8)]

Vectors of 16 bytes are permuted within their row by an exclusive or with the row number. wgmma
wants longer rows in panels of 128 bytes, all rows of one panel and then those of the next. The
instructions read this layout; the stores to the buffers are rewritten here.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, as_int, binary
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Buffer, Func, Region, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import FRAGMENT
from tilewright.ir.loop.walk import buffers, map_stmt, statements_in, touched_buffers
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.gpu import VECTOR_BYTES

# The period of the swizzle in rows.
ROWS = 8
# The bytes of a row of a panel.
PANEL_BYTES = 128


@node
class SharedLayout:
    """The layout of an operand: elements of a row and of a vector, and the shape of a panel.

    `panel_rows` is 0 where there are no panels. With `several` groups of `panel_rows` rows, all
    panels of one group come before those of the next.
    """

    row: int
    vector: int
    panel_rows: int
    panel_columns: int
    several: bool

    def start(self, index: Expr) -> Expr:
        """Where an element, or a tile, begins, before the swizzle."""
        if not self.panel_rows:
            return index
        row, column = index // self.row, index % self.row
        panel = column // self.panel_columns * self.panel_rows * self.panel_columns
        if self.several:
            panel, row = (
                panel + row // self.panel_rows * self.panel_rows * self.row,
                row % self.panel_rows,
            )
        return simplify(panel + row * self.panel_columns + column % self.panel_columns)

    def moved(self, index: Expr) -> Expr:
        """The index of an element in this layout."""
        if isinstance(index, Ramp):
            if index.stride != 1 or index.count > self.vector:
                raise _error(str(index), "is no vector of 16 bytes")
            return Ramp(self.moved(index.base), 1, index.count)
        order = simplify(index // self.row % ROWS * self.vector)
        return binary("xor", self.start(index), order)


def swizzle(func: Func) -> Func:
    """`func`, flat already, with the operands of matrix instructions in their layout."""
    layouts = _layouts(func)
    if not layouts:
        return func

    def region(r: Region) -> Region:
        if r.buffer not in layouts:
            return r
        ((start, row),) = r.ranges
        return Region(r.buffer, ((layouts[r.buffer].start(start), row),))

    def rewritten(stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, rewritten)
        if isinstance(stmt, Store) and stmt.buffer in layouts:
            index = layouts[stmt.buffer].moved(stmt.indices[0])
            return Store(stmt.buffer, (index,), stmt.value, stmt.mask)
        if isinstance(stmt, Tile):
            return replace(stmt, srcs=tuple(map(region, stmt.srcs)))
        return stmt

    return replace(func, body=rewritten(func.body))


def _layouts(func: Func) -> dict[str, SharedLayout]:
    """The layout of each operand, which nothing else may read."""
    known = buffers(func)
    found: dict[str, SharedLayout] = {}
    for stmt in statements_in(func.body):
        if isinstance(stmt, Tile) and INTRINSICS[stmt.intrinsic].swizzled:
            row = INTRINSICS[stmt.intrinsic]
            for param, region in zip(pattern_of(stmt.intrinsic).params, stmt.srcs, strict=False):
                if known[region.buffer].scope == FRAGMENT:
                    continue
                # A panel of an MN-major operand has the rows of K that one instruction takes.
                mn_major = param.name == "b" and row.tile.endswith("n")
                high = as_int(param.shape[0]) if mn_major else None
                layout = _layout(
                    known[region.buffer], region, param.name in row.swizzle_panels, high
                )
                if found.setdefault(region.buffer, layout) != layout:
                    raise _error(region.buffer, "is an operand of several kinds")
    for stmt in statements_in(func.body):
        if isinstance(stmt, Store):
            for name in touched_buffers(stmt)[0] & set(found):
                raise _error(name, "is read by more than mma instructions")
    return found


def _layout(buffer: Buffer, region: Region, panels: bool, high: int | None) -> SharedLayout:
    ((_, apart),) = region.ranges
    row, size = as_int(apart), as_int(buffer.shape[0])
    assert row is not None
    assert size is not None
    bytes = buffer.dtype.bytes
    wide = PANEL_BYTES // bytes
    rows = size // row
    high = (high or rows) if panels and row > wide else 0
    return SharedLayout(row, VECTOR_BYTES // bytes, high, wide, 0 < high < rows)


def _error(name: str, what: str) -> CodegenError:
    return CodegenError("gpu.swizzle", f"{name} {what}")
