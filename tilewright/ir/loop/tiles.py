"""What tile statements mean: their expansion to plain loops.

    tile mma C[0 : 2, 0 : 3] <- A[0 : 2, 0 : 4], B[0 : 4, 0 : 3]

    for t.m in serial(2) { for t.n in serial(3) { for t.k in serial(4) {
      C[t.m, t.n] += A[t.m, t.k] * B[t.k, t.n]
    } } }

`fill` stores zeros; `copy` matches the dimensions longer than 1 of both sides in order and converts
the type; `copy.padded` does so for a source that may be shorter or reach beyond its buffer, and
reads zeros there; `mma` multiplies matrices that are the last two dimensions of its regions, in the
type of what it adds to, `mma.tn`, `mma.nt` and `mma.tt` with the first, the second or both of them
transposed; `mma.packed` has the rows of the second matrix in groups whose elements lie side by
side, `c[m, n] += a[m, k] * b[k // g, n, k % g]`; `dot` adds to each element of a vector the product
of one vector with a row of a matrix, `c[j] += a[k] * b[j, k]`; `map.exp`, `map.add` apply a
function or operator element by element; `reduce.sum` combines the last dimension of its source into
what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.arith.expr import TRUE, Expr, Load, Var, as_int, binary, call, cast, const
from tilewright.arith.operators import BINARY, CALLS, COMBINE
from tilewright.arith.simplify import simplify
from tilewright.core.errors import UnsupportedError, VerifyError
from tilewright.ir.loop.nodes import Buffer, For, Region, Stmt, Store, Tile
from tilewright.ir.loop.text import print_region

Buffers = Mapping[str, Buffer]
Loops = list[tuple[str, Expr]]


def expand_tile(tile: Tile, buffers: Buffers, prefix: str = "t") -> Stmt:
    """The loops that do what `tile` does; loop names start with `prefix`."""
    family = tile.op if is_padded_copy(tile) else tile.op.partition(".")[0]
    if family not in _EXPAND:
        raise UnsupportedError(
            "tile.expansion",
            f"tile {tile.op} has no expansion",
            help=f"use one of {', '.join(_EXPAND)}",
        )
    loops, store = _EXPAND[family](tile, buffers, prefix)
    for name, extent in reversed(loops):
        store = For(name, extent, "serial", store)
    return store


def is_copy(tile: Tile) -> bool:
    """Whether a tile is moved, padded or not."""
    return tile.op.partition(".")[0] == "copy"


def is_padded_copy(tile: Tile) -> bool:
    """Whether a tile is moved that may reach beyond its source."""
    return tile.op == "copy.padded"


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


def _copy_padded(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    _require(tile, len(tile.srcs) == 1, "copy has one source")
    src = tile.srcs[0]
    loops, indices = _elements(tile.dst, prefix)
    offsets: list[Expr] = [Var(name) for name, _ in loops]
    offsets = offsets or [const(0)] * len(_long(src))
    _require(tile, len(offsets) == len(_long(src)), "both sides of a copy have one rank")
    left = iter(offsets)
    inside: Expr = TRUE
    wanted: list[Expr] = []
    for (start, extent), size in zip(src.ranges, buffers[src.buffer].shape, strict=True):
        offset: Expr = const(0) if as_int(extent) == 1 else next(left)
        wanted.append(start + offset)
        inside = inside & (offset < extent) & (wanted[-1] < size)
    value = Load(src.buffer, tuple(wanted), buffers[src.buffer].dtype, simplify(inside))
    return loops, Store(tile.dst.buffer, indices, cast(buffers[tile.dst.buffer].dtype, value))


def _mma(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    _require(tile, len(tile.srcs) == 2, "mma has two sources")
    if tile.op == "mma.packed":
        return _mma_packed(tile, buffers, prefix)
    regions = (tile.dst, *tile.srcs)
    _require(tile, all(len(r.ranges) >= 2 for r in regions), "mma works on matrices")
    rows, columns, depth = (f"{prefix}.{axis}" for axis in "mnk")
    extents: dict[str, Expr] = {}
    indices = []
    for region, axes in zip(regions, _matrix_axes(tile, rows, columns, depth), strict=True):
        for axis, dim in zip(axes, _matrix_dims(region), strict=True):
            extent = region.ranges[dim][1]
            fits = extents.setdefault(axis, extent) is extent
            _require(tile, fits, "the matrices of an mma fit")
        indices.append(_matrix_index(region, *map(Var, axes)))
    dtype = buffers[tile.dst.buffer].dtype
    c, a, b = (
        Load(r.buffer, index, buffers[r.buffer].dtype)
        for r, index in zip(regions, indices, strict=True)
    )
    store = Store(tile.dst.buffer, indices[0], c + cast(dtype, a) * cast(dtype, b))
    return [(axis, extents[axis]) for axis in (rows, columns, depth)], store


def _matrix_axes(tile: Tile, m: str, n: str, k: str) -> tuple[tuple[str, str], ...]:
    """The axes of the two dimensions of the sum and of both operands."""
    turned = tile.op.partition(".")[2] or "nn"
    left = (m, k) if turned[0] == "n" else (k, m)
    return (m, n), left, (k, n) if turned[1] == "n" else (n, k)


def _mma_packed(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    c, a, b = (_Long(r, buffers) for r in (tile.dst, *tile.srcs))
    fits = (len(c.extents), len(a.extents), len(b.extents)) == (2, 2, 3)
    _require(tile, fits, "mma.packed works on two matrices and a grouped one")
    (m, n), (m_a, k), (groups, n_b, group) = c.extents, a.extents, b.extents
    whole = as_int(groups * group) == as_int(k)
    _require(tile, m is m_a and n is n_b and whole, "the matrices of an mma fit")
    row, column, number, place = (Var(f"{prefix}.{axis}") for axis in "mnkg")
    dtype = buffers[tile.dst.buffer].dtype
    old = c.element(row, column)
    product = cast(dtype, a.element(row, number * group + place)) * cast(
        dtype, b.element(number, column, place)
    )
    loops = [(v.name, e) for v, e in ((row, m), (column, n), (number, groups), (place, group))]
    return loops, Store(tile.dst.buffer, old.indices, old + product)


class _Long:
    """A region by its dimensions longer than 1."""

    def __init__(self, region: Region, buffers: Buffers) -> None:
        self.region = region
        self.dtype = buffers[region.buffer].dtype
        self.extents = [n for _, n in _long(region)]

    def element(self, *offsets: Expr) -> Load:
        """An element, by offsets in those dimensions."""
        left = iter(offsets)
        indices = (s if as_int(n) == 1 else s + next(left) for s, n in self.region.ranges)
        return Load(self.region.buffer, tuple(indices), self.dtype)


def _dot(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    _require(tile, len(tile.srcs) == 2, "dot has two sources")
    c, a, b = tile.dst, *tile.srcs
    (n,), (k,) = (tuple(e for _, e in r.ranges[-1:]) for r in (c, a))
    fits = len(b.ranges) >= 2 and tuple(e for _, e in b.ranges[-2:]) == (n, k)
    _require(tile, fits, "the second source of a dot has a row for each element")
    column, depth = f"{prefix}.n", f"{prefix}.k"
    dtype = buffers[c.buffer].dtype
    old = _element(c, buffers, Var(column))
    product = cast(dtype, _element(a, buffers, Var(depth))) * cast(
        dtype, _element(b, buffers, Var(column), Var(depth))
    )
    return [(column, n), (depth, k)], Store(c.buffer, old.indices, old + product)


def _map(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    fn = tile.op.partition(".")[2]
    wanted = CALLS.get(fn, 2 if fn in BINARY else 0)
    _require(tile, wanted == len(tile.srcs) > 0, f"map.{fn} takes {wanted} sources")
    loops, indices = _elements(tile.dst, prefix)
    operands = [Load(r.buffer, _elements(r, prefix)[1], buffers[r.buffer].dtype) for r in tile.srcs]
    value = call(fn, *operands) if fn in CALLS else binary(fn, *operands)
    return loops, Store(tile.dst.buffer, indices, value)


def _reduce(tile: Tile, buffers: Buffers, prefix: str) -> tuple[Loops, Stmt]:
    op = tile.op.partition(".")[2]
    _require(tile, op in COMBINE and len(tile.srcs) == 1, "reduce has one source and a reduction")
    src = tile.srcs[0]
    loops, indices = _elements(tile.dst, prefix)
    every, position = _elements(src, prefix)
    _require(tile, every[:-1] == loops and len(every) > len(loops), "reduce drops one dimension")
    dtype = buffers[tile.dst.buffer].dtype
    old = Load(tile.dst.buffer, indices, dtype)
    term = cast(dtype, Load(src.buffer, position, buffers[src.buffer].dtype))
    return every, Store(tile.dst.buffer, indices, binary(COMBINE[op], old, term))


def _element(region: Region, buffers: Buffers, *offsets: Expr) -> Load:
    """An element, by offsets in the last dimensions of a region."""
    starts = [start for start, _ in region.ranges]
    kept = len(starts) - len(offsets)
    moved = (s + o for s, o in zip(starts[kept:], offsets, strict=True))
    return Load(region.buffer, (*starts[:kept], *moved), buffers[region.buffer].dtype)


_EXPAND: dict[str, Callable[[Tile, Buffers, str], tuple[Loops, Stmt]]] = {
    "fill": _fill,
    "copy": _copy,
    "copy.padded": _copy_padded,
    "mma": _mma,
    "dot": _dot,
    "map": _map,
    "reduce": _reduce,
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


def _matrix_dims(region: Region) -> tuple[int, int]:
    """The dimensions of a region that is a matrix: both that are longer than 1, or the last two."""
    long = [n for n, (_, extent) in enumerate(region.ranges) if as_int(extent) != 1]
    rank = len(region.ranges)
    return (long[0], long[1]) if len(long) == 2 else (rank - 2, rank - 1)


def _matrix_index(region: Region, row: Expr, column: Expr) -> tuple[Expr, ...]:
    starts = [start for start, _ in region.ranges]
    for dim, place in zip(_matrix_dims(region), (row, column), strict=True):
        starts[dim] = starts[dim] + place
    return tuple(starts)


def _require(tile: Tile, holds: bool, rule: str) -> None:
    if not holds:
        regions = ", ".join(map(print_region, (tile.dst, *tile.srcs)))
        raise VerifyError("tile.shape", f"tile {tile.op} of {regions}: {rule}")
