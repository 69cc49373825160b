"""Adjacent vectors of strided elements: load contiguous rows and transpose them in registers.

    C[...] = A[ramp(0, 64, 4)]             alloc A.rows: f32[16] @register
    C[...] = A[ramp(1, 64, 4)]             A.rows[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]
    C[...] = A[ramp(2, 64, 4)]      →      A.rows[ramp(4, 1, 4)] = A[ramp(64, 1, 4)]  ...
    C[...] = A[ramp(3, 64, 4)]             C[...] = shuffle(shuffle(A.rows[...], ...), ...)  ...

A square of n by n elements takes n loads and n log2(n) shuffles, where element by element it took
n * n of each. Step d of the shuffles exchanges blocks of d by d elements across the diagonal. Where
at most half of the columns are there, a vector holds two short rows or more, and squares next to
each other are transposed at once: of 16 rows of 8 elements, 8 vectors in 3 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.arith.affine import from_affine, split_by, to_affine
from tilewright.arith.expr import FALSE, TRUE, Expr, Load, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.arith.walk import loads, rewrite
from tilewright.core.dtypes import BOOL
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, Seq, Stmt, Store
from tilewright.ir.loop.walk import buffers, map_stmt

# One column is loaded element by element.
MIN_COLUMNS = 2
# Fewer columns of elements a few apart are picked even where lanes are masked (`known_masks`).
MIN_MASKED_COLUMNS = 4


@dataclass(frozen=True)
class _Square:
    """Vectors that are the columns of a square whose rows are contiguous, in their order.

    The last columns may be missing, as those past the end of a row; nothing of them is loaded.
    """

    columns: tuple[Load, ...]
    base: Expr
    stride: Expr

    @property
    def size(self) -> int:
        """The elements of a column: the rows of the square."""
        return self.columns[0].lanes

    @property
    def width(self) -> int:
        """The elements of a row as it is loaded, a power of two."""
        return _width(len(self.columns))

    def vector(self, i: int) -> Expr:
        """The rows that one vector holds: every one of `width` from row `i` on."""
        return _joined([self._row(n) for n in range(i, self.size, self.width)])

    def _row(self, i: int) -> Load:
        base = simplify(self.base + i * self.stride)
        first, count = self.columns[0], len(self.columns)
        mask = TRUE if first.mask is None else simplify(_of_lane(first.mask, i))
        if count < self.width and mask is not FALSE and not self._ends_within(i):
            mask = simplify(mask & (Ramp(const(0), 1, self.width) < count))
        indices = (Ramp(base, 1, self.width),)
        return Load(first.buffer, indices, first.dtype, None if mask is TRUE else mask)

    def _ends_within(self, i: int) -> bool:
        """Whether a row without its mask reads nothing behind the last row's last element."""
        stride = as_int(self.stride)
        if stride is None or stride < 0 or self.columns[0].mask is not None:
            return False
        return i * stride + self.width <= (self.size - 1) * stride + len(self.columns)


def _width(columns: int) -> int:
    """The least power of two that is not less."""
    return 1 << (columns - 1).bit_length()


def _joined(parts: Sequence[Expr]) -> Expr:
    """Vectors of one length as one, in their order."""
    vectors = list(parts)
    while len(vectors) > 1:
        lanes = 2 * vectors[0].lanes
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [Shuffle(a, b, tuple(range(lanes))) for a, b in pairs]
    return vectors[0]


def transpose_loads(func: Func) -> Func:
    """`func` with squares of strided vectors loaded by rows."""
    return replace(func, body=_Transposer(buffers(func)).stmt(func.body))


class _Transposer:
    def __init__(self, known: Iterable[str]) -> None:
        self.names = set(known)

    def stmt(self, s: Stmt) -> Stmt:
        s = map_stmt(s, self.stmt)
        if not isinstance(s, Seq) or not all(isinstance(c, Store) for c in s.stmts):
            return s
        stores = [c for c in s.stmts if isinstance(c, Store)]
        squares = list(_squares(stores))
        return self._by_rows(stores, squares) if squares else s

    def _by_rows(self, stores: Sequence[Store], squares: Sequence[_Square]) -> Stmt:
        """Each square's rows are loaded before its first use, into registers."""
        pending: dict[Expr, tuple[_Square, Buffer]] = {}
        found: dict[Expr, Expr] = {}
        rows: list[Buffer] = []
        for square in squares:
            buffer = self._buffer(square)
            rows.append(buffer)
            pending.update((column, (square, buffer)) for column in square.columns)
            columns = _transposed(_held(square, buffer))
            found.update(zip(square.columns, columns, strict=False))
        result: list[Stmt] = []
        memo: dict[Expr, Expr] = {}
        for store in stores:
            for load in loads(store.value):
                if load in pending:
                    square, buffer = pending[load]
                    result += _loading(square, buffer)
                    for column in square.columns:
                        del pending[column]
            result.append(replace(store, value=rewrite(store.value, found.get, memo)))
        body: Stmt = Seq(tuple(result))
        for buffer in rows:
            body = Alloc(buffer, body)
        return body

    def _buffer(self, square: _Square) -> Buffer:
        source, count = square.columns[0], 0
        while (name := f"{source.buffer}.rows{count}") in self.names:
            count += 1
        self.names.add(name)
        size = const(square.size * square.width)
        return Buffer(name, source.dtype, (size,), "register")


def _squares(stores: Sequence[Store]) -> Iterator[_Square]:
    """Runs of as many strided vectors as each has elements, one after the other in memory."""
    written = {s.buffer for s in stores}
    groups: dict[tuple[object, ...], dict[int, _Strided]] = {}
    for load in (x for s in stores for x in loads(s.value)):
        column = _strided(load) if load.buffer not in written else None
        if column is not None:
            form = to_affine(column.base)
            shape = (column.stride, load.lanes, frozenset(form.coeffs.items()))
            groups.setdefault((load.buffer, load.mask, *shape), {})[form.constant] = column
    for members in groups.values():
        yield from _runs(members)


@dataclass(frozen=True)
class _Strided:
    """A vector load of constant stride other than 1."""

    load: Load
    base: Expr
    stride: Expr


def _strided(load: Load) -> _Strided | None:
    lanes, index = load.lanes, load.indices[0]
    if load.dtype == BOOL or lanes < 2 or lanes & (lanes - 1):
        return None
    if load.mask is not None and _of_lane(load.mask, 0).lanes > 1:
        return None
    if isinstance(index, Ramp):
        strided = index.stride not in (0, 1)
        return _Strided(load, index.base, const(index.stride)) if strided else None
    # Rows whose length is not known: a multiple of it for each lane.
    lane = Ramp(const(0), 1, lanes)
    of_lane = rewrite(index, lambda e: Var("lane") if e is lane else None)
    parts = split_by(to_affine(of_lane), "lane")
    if parts is None or of_lane.lanes > 1:
        return None
    stride, base = map(from_affine, parts)
    return _Strided(load, base, stride)


def _of_lane(mask: Expr, lane: int) -> Expr:
    """A condition on the lanes of a column as it is for one of them, which is a row's."""
    return rewrite(mask, lambda e: e.base + lane * e.stride if isinstance(e, Ramp) else None)


def _runs(members: dict[int, _Strided]) -> Iterator[_Square]:
    offsets = sorted(members)
    size = members[offsets[0]].load.lanes
    at = 0
    while at < len(offsets):
        count = 1
        while offsets[at : at + count + 1][-1] - offsets[at] == count and count < size:
            count += 1
        columns = [members[o] for o in offsets[at : at + count]]
        if (count == size or count >= MIN_COLUMNS) and _pays(columns):
            yield _Square(tuple(c.load for c in columns), columns[0].base, columns[0].stride)
        at += count


def _pays(columns: Sequence[_Strided]) -> bool:
    """Whether a square takes fewer instructions than picking each column from whole vectors.

    Code generation picks elements a few apart: with stride s, s loads and s - 1 shuffles a column.
    A square takes a load for each row, an insertion where a vector holds several, and shuffles.
    """
    index, mask = columns[0].load.indices[0], columns[0].load.mask
    if not (isinstance(index, Ramp) and index.is_dense):
        return True
    if mask is not None and mask.lanes > 1:
        return len(columns) >= MIN_MASKED_COLUMNS
    size, width = index.count, _width(len(columns))
    shuffles = width * (width.bit_length() - 1)
    return 2 * size - width + shuffles < len(columns) * (2 * index.stride - 1)


def _loading(square: _Square, buffer: Buffer) -> list[Stmt]:
    return [
        Store(buffer.name, h.indices, square.vector(i)) for i, h in enumerate(_held(square, buffer))
    ]


def _held(square: _Square, buffer: Buffer) -> list[Load]:
    """The vectors of rows where they are held in registers."""
    size = square.size
    ramps = (Ramp(const(i * size), 1, size) for i in range(square.width))
    return [Load(buffer.name, (ramp,), buffer.dtype) for ramp in ramps]


def _transposed(rows: Sequence[Expr]) -> list[Expr]:
    """The columns of a square of rows, or of squares that stand next to each other."""
    vectors, size, step = list(rows), rows[0].lanes, 1
    while step < len(vectors):
        lower = tuple(p if not p & step else size + p - step for p in range(size))
        upper = tuple(p + step if not p & step else size + p for p in range(size))
        for i in range(len(vectors)):
            if not i & step:
                a, b = vectors[i], vectors[i + step]
                vectors[i], vectors[i + step] = Shuffle(a, b, lower), Shuffle(a, b, upper)
        step *= 2
    return vectors
