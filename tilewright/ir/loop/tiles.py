"""What tile statements mean: their expansion to plain loops.

    tile mma C[0 : 2, 0 : 3] <- A[0 : 2, 0 : 4], B[0 : 4, 0 : 3]

    for t.m in serial(2) { for t.n in serial(3) { for t.k in serial(4) {
      C[t.m, t.n] += A[t.m, t.k] * B[t.k, t.n]
    } } }

`fill` stores zeros; `copy` matches the dimensions longer than 1 of both sides in order and converts
the type; `mma` multiplies matrices that are the last two dimensions of its regions, in the type of
what it adds to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.arith.expr import Expr, Load, Var, as_int, cast, const
from tilewright.core.errors import UnsupportedError, VerifyError
from tilewright.ir.loop.nodes import Buffer, For, Region, Stmt, Store, Tile
from tilewright.ir.loop.text import print_region

Buffers = Mapping[str, Buffer]
Loops = list[tuple[str, Expr]]


def expand_tile(tile: Tile, buffers: Buffers, prefix: str = "t") -> Stmt:
    """The loops that do what `tile` does; loop names start with `prefix`."""
    if tile.op not in _EXPAND:
        raise UnsupportedError(
            "tile.expansion",
            f"tile {tile.op} has no expansion: it does not say which function it applies",
            help=f"use one of {', '.join(_EXPAND)}",
        )
    loops, store = _EXPAND[tile.op](tile, buffers, prefix)
    for name, extent in reversed(loops):
        store = For(name, extent, "serial", store)
    return store


def _fill(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    loops, indices = _elements(tile.dst, prefix)
    return loops, Store(tile.dst.buffer, indices, const(0, buffers[tile.dst.buffer].dtype))


def _copy(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    _require(tile, len(tile.srcs) == 1, "copy has one source")
    src = tile.srcs[0]
    loops, indices = _elements(tile.dst, prefix)
    _, wanted = _elements(src, prefix)
    extents = [n for _, n in loops]
    _require(tile, extents == [n for _, n in _long(src)], "both sides of a copy have one shape")
    value = Load(src.buffer, wanted, buffers[src.buffer].dtype)
    return loops, Store(tile.dst.buffer, indices, cast(buffers[tile.dst.buffer].dtype, value))


def _mma(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    _require(tile, len(tile.srcs) == 2, "mma has two sources")
    regions = (tile.dst, *tile.srcs)
    _require(tile, all(len(r.ranges) >= 2 for r in regions), "mma works on matrices")
    (m, n), (m_a, k), (k_b, n_b) = (tuple(e for _, e in r.ranges[-2:]) for r in regions)
    _require(tile, m is m_a and n is n_b and k is k_b, "the matrices of an mma fit")
    rows, columns, depth = (f"{prefix}.{axis}" for axis in "mnk")
    indices = [
        _matrix_index(region, Var(first), Var(second))
        for region, first, second in zip(
            regions, (rows, rows, depth), (columns, depth, columns), strict=True
        )
    ]
    dtype = buffers[tile.dst.buffer].dtype
    c, a, b = (
        Load(r.buffer, index, buffers[r.buffer].dtype)
        for r, index in zip(regions, indices, strict=True)
    )
    store = Store(tile.dst.buffer, indices[0], c + cast(dtype, a) * cast(dtype, b))
    return [(rows, m), (columns, n), (depth, k)], store


_EXPAND: dict[str, Callable[[Tile, Buffers, str], tuple[Loops, Stmt]]] = {
    "fill": _fill,
    "copy": _copy,
    "mma": _mma,
}


def _long(region: Region) -> list[tuple[Expr, Expr]]:
    return [(start, n) for start, n in region.ranges if as_int(n) != 1]


def _elements(region: Region, prefix: str) -> tuple[Loops, tuple[Expr, ...]]:
    """Loops over the dimensions longer than 1, and the index of an element inside them."""
    loops: Loops = []
    indices: list[Expr] = []
    for start, extent in region.ranges:
        if as_int(extent) == 1:
            indices.append(start)
        else:
            loops.append((f"{prefix}.{len(loops)}", extent))
            indices.append(start + Var(loops[-1][0]))
    return loops, tuple(indices)


def _matrix_index(region: Region, row: Expr, column: Expr) -> tuple[Expr, ...]:
    starts = [start for start, _ in region.ranges]
    return (*starts[:-2], starts[-2] + row, starts[-1] + column)


def _require(tile: Tile, holds: bool, rule: str) -> None:
    if not holds:
        regions = ", ".join(map(print_region, (tile.dst, *tile.srcs)))
        raise VerifyError("tile.shape", f"tile {tile.op} of {regions}: {rule}")
