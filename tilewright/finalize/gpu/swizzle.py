"""Operands of matrix instructions in shared memory, laid so that no two rows meet in a bank.

    T[r * 64 + p * 8 + e]    →    T[(r * 64 + p * 8 + e) ^ (r % 8 * 8)]

Pieces of 16 bytes change places within their row, in another order in each of eight rows. Some
instructions want longer rows in panels of 128 bytes, all rows of one and then those of the next.
They know all this; what writes the buffers is rewritten here.
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
from tilewright.ir.loop.walk import buffers, map_stmt, statements, touched_buffers
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.table import INTRINSICS

# Bytes of a piece, and how many rows have orders of their own.
PIECE, ROWS = 16, 8
# The bytes of a row of a panel.
PANEL = 128


@node
class _Form:
    """How a buffer lies: elements of a row, of a piece, the rows of a panel (0: there are none).

    `wide` is the columns of a panel. Where there are `more` rows than a panel has, all panels of
    the first of them come before those of the next.
    """

    row: int
    piece: int
    high: int
    wide: int
    more: bool

    def start(self, index: Expr) -> Expr:
        """Where an element, or a tile, begins, but for what changes places."""
        if not self.high:
            return index
        row, column = index // self.row, index % self.row
        panel = column // self.wide * self.high * self.wide
        if self.more:
            panel, row = panel + row // self.high * self.high * self.row, row % self.high
        return simplify(panel + row * self.wide + column % self.wide)

    def moved(self, index: Expr) -> Expr:
        """Where elements lie."""
        if isinstance(index, Ramp):
            if index.stride != 1 or index.count > self.piece:
                raise _error(str(index), "is no piece of 16 bytes")
            return Ramp(self.moved(index.base), 1, index.count)
        order = simplify(index // self.row % ROWS * self.piece)
        return binary("xor", self.start(index), order)


def swizzle(func: Func) -> Func:
    """`func`, flat already, with the operands of matrix instructions in their layout."""
    forms = _forms(func)
    if not forms:
        return func

    def region(r: Region) -> Region:
        if r.buffer not in forms:
            return r
        ((start, row),) = r.ranges
        return Region(r.buffer, ((forms[r.buffer].start(start), row),))

    def rewritten(stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, rewritten)
        if isinstance(stmt, Store) and stmt.buffer in forms:
            index = forms[stmt.buffer].moved(stmt.indices[0])
            return Store(stmt.buffer, (index,), stmt.value, stmt.mask)
        if isinstance(stmt, Tile):
            return replace(stmt, srcs=tuple(map(region, stmt.srcs)))
        return stmt

    return replace(func, body=rewritten(func.body))


def _forms(func: Func) -> dict[str, _Form]:
    """How each such buffer lies, which nothing else may read."""
    known = buffers(func)
    found: dict[str, _Form] = {}
    for _, stmt in statements(func.body):
        if isinstance(stmt, Tile) and INTRINSICS[stmt.intrinsic].swizzled:
            row = INTRINSICS[stmt.intrinsic]
            for param, region in zip(pattern_of(stmt.intrinsic).params, stmt.srcs, strict=False):
                if known[region.buffer].scope == FRAGMENT:
                    continue
                # Of what lies across the sum, a panel has the rows that one statement adds.
                across = param.name == "b" and row.tile.endswith("n")
                high = as_int(param.shape[0]) if across else None
                form = _form(known[region.buffer], region, param.name in row.panels, high)
                if found.setdefault(region.buffer, form) != form:
                    raise _error(region.buffer, "is an operand of several kinds")
    for _, stmt in statements(func.body):
        if isinstance(stmt, Store):
            for name in touched_buffers(stmt)[0] & set(found):
                raise _error(name, "is read by more than instructions on matrices")
    return found


def _form(buffer: Buffer, region: Region, panels: bool, high: int | None) -> _Form:
    ((_, apart),) = region.ranges
    row, size = as_int(apart), as_int(buffer.shape[0])
    assert row is not None
    assert size is not None
    bytes = buffer.dtype.bytes
    wide = PANEL // bytes
    rows = size // row
    high = (high or rows) if panels and row > wide else 0
    return _Form(row, PIECE // bytes, high, wide, 0 < high < rows)


def _error(name: str, what: str) -> CodegenError:
    return CodegenError("gpu.swizzle", f"{name} {what}")
