"""Accesses of one k-tile moved to a stage of a multistage buffer.

S[i] = T[i]       →       S[i] = T[k % 3 * 1024 + i]        stage k % 3 of 1024 elements
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Expr, Load, const
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.nodes import Region, Stmt, Store, Tile
from tilewright.ir.loop.walk import map_stmt
from tilewright.schedule.intrin.table import INTRINSICS


def select_stage(stmt: Stmt, sizes: Mapping[str, Expr], stage: Expr) -> Stmt:
    """`stmt` with its accesses to flat buffers in a stage; `sizes` are those of one stage."""

    def moved(buffer: str, index: Expr) -> Expr:
        start = stage * sizes[buffer]
        if isinstance(index, Ramp):
            return Ramp(start + index.base, index.stride, index.count)
        return start + index

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer in sizes:
            return Load(e.buffer, (moved(e.buffer, e.indices[0]),), e.dtype, e.mask)
        return None

    def region(r: Region) -> Region:
        if r.buffer not in sizes:
            return r
        ((start, row),) = r.ranges
        return Region(r.buffer, ((moved(r.buffer, start), row),))

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go, lambda e: rewrite(e, load))
        if isinstance(s, Tile):
            return replace(s, dst=region(s.dst), srcs=tuple(map(region, s.srcs)))
        if isinstance(s, Store) and s.buffer in sizes:
            return Store(s.buffer, (moved(s.buffer, s.indices[0]),), s.value, s.mask)
        return s

    return go(stmt)


def one_element(buffer: str, index: Expr) -> Region:
    """One element of a flat buffer."""
    return Region(buffer, ((index, const(1)),))


def is_tma_load(stmt: Stmt) -> bool:
    """Whether a statement is a TMA copy."""
    return isinstance(stmt, Tile) and INTRINSICS[stmt.intrinsic].tma_box is not None


def counted_by(stmt: Stmt, mbarrier: Region) -> Stmt:
    """`stmt` with an mbarrier that its TMA copies arrive at."""

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go)
        if isinstance(s, Tile) and is_tma_load(s):
            return replace(s, srcs=(*s.srcs, mbarrier))
        return s

    return go(stmt)
