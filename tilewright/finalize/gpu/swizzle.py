"""Operands of matrix instructions in shared memory, laid so that no two rows meet in a bank.

    T[r * 64 + p * 8 + e]    →    T[(r * 64 + p * 8 + e) ^ (r % 8 * 8)]

Pieces of 16 bytes change places within their row, in another order in each of eight rows. The
instructions, which read eight rows at once, know it; what writes the buffers is rewritten here.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, as_int, binary
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Func, Stmt, Store, Tile
from tilewright.ir.loop.walk import buffers, map_stmt, statements, touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS

# Bytes of a piece, and how many rows have orders of their own.
PIECE, ROWS = 16, 8


def swizzle(func: Func) -> Func:
    """`func`, flat already, with the operands of matrix instructions in their layout."""
    rows = _swizzled(func)
    if not rows:
        return func
    known = buffers(func)

    def rewritten(stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, rewritten)
        if isinstance(stmt, Store) and stmt.buffer in rows:
            row, piece = rows[stmt.buffer], PIECE // known[stmt.buffer].dtype.bytes
            (index,) = stmt.indices
            return Store(stmt.buffer, (_moved(index, row, piece),), stmt.value, stmt.mask)
        return stmt

    return replace(func, body=rewritten(func.body))


def _swizzled(func: Func) -> dict[str, int]:
    """The elements from row to row of each such buffer, which nothing else may read."""
    found: dict[str, int] = {}
    for _, stmt in statements(func.body):
        if isinstance(stmt, Tile) and INTRINSICS[stmt.intrinsic].swizzled:
            for region in stmt.srcs:
                ((_, apart),) = region.ranges
                row = as_int(apart)
                assert row is not None
                if found.setdefault(region.buffer, row) != row:
                    raise _error(region.buffer, "has rows of several lengths")
    for _, stmt in statements(func.body):
        if isinstance(stmt, Store):
            for name in touched_buffers(stmt)[0] & set(found):
                raise _error(name, "is read by more than instructions on matrices")
    return found


def _moved(index: Expr, row: int, piece: int) -> Expr:
    if isinstance(index, Ramp):
        if index.stride != 1 or index.count > piece:
            raise _error(str(index), "is no piece of 16 bytes")
        return Ramp(_moved(index.base, row, piece), 1, index.count)
    return binary("xor", index, simplify(index // row % ROWS * piece))


def _error(name: str, what: str) -> CodegenError:
    return CodegenError("gpu.swizzle", f"{name} {what}")
