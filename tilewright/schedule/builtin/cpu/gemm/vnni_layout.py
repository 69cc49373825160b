"""The VNNI layout of a bf16 operand B: panels of columns, two elements of K side by side.

    B[k, n]    →    B[n // columns, k // 2, n % columns, k % 2]

AMX tiles and bf16 dot products read both elements of a pair with one 32-bit lane.
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.ir.loop.nodes import Iter
from tilewright.schedule.schedule import Schedule


def pack_vnni(sch: Schedule, b: Load, k: Iter, n: Iter, columns: int) -> None:
    """Lay `b` out in panels of so many columns; its batch dimensions are outermost."""
    row, column = (b.indices.index(Var(axis.name)) for axis in (k, n))
    batch = [(d, 0, 0) for d in range(len(b.indices)) if d not in (row, column)]
    panel = [(column, columns, 0), (row, 2, 0), (column, columns, 1), (row, 2, 1)]
    sch.transform_layout(b.buffer, [*batch, *panel])
