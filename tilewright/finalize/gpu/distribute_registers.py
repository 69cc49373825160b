"""Private buffers shrink to the part that one thread uses.

    alloc C: f32[128, 128] @register               alloc C: f32[8, 8] @register
    for y in thread(16) {                          for y in thread(16) {
      for x in thread(16) {                          for x in thread(16) {
        for i, j in serial(8, 8) {            →        for i, j in serial(8, 8) {
          C[y * 8 + i, x * 8 + j] = 0.0                  C[i, j] = 0.0

The origin of a thread's part must be the same in all nests of thread loops
(`ir/loop/thread_mapping.py`). Of a fragment of a warp, a lane has the elements that mma
instructions assign to it: see `schedule/intrin/nvidia/mma.py`, and
`schedule/intrin/nvidia/fragment_shuffle.py` for other distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.affine import to_affine
from tilewright.arith.bounds import NATURAL, Bounds, lower, upper
from tilewright.arith.expr import Expr, Load, Var, const
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import loads, rewrite, substitute
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Region, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import (
    FRAGMENT,
    THREAD,
    THREAD_KINDS,
    WARP_SIZE,
    ThreadMapping,
    private_buffers,
    thread_mappings,
    thread_values,
    threads_of,
)
from tilewright.ir.loop.walk import map_stmt, own_expressions, statements, statements_in
from tilewright.schedule.intrin.nvidia.fragment_shuffle import ROW_ELEMENTS
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.rewrite_accesses import simplify_loads

Extents = Mapping[str, Expr]
# The layout of an mma fragment: neighbouring columns of a lane, lanes of a row, and the distance of
# a lane's rows.
COLS_PER_LANE, LANES_PER_ROW, ROW_STEP = 2, 4, 8


def distribute_registers(func: Func) -> Func:
    """`func` with each private buffer reduced to the part of one thread."""
    threads = threads_of(func.body)
    found = thread_mappings(func.body, threads)
    if not found:
        return func
    private = private_buffers(func.body)

    def shrink(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc) and stmt.buffer.name in private:
            body = shrink(stmt.body)
            return _Part(stmt.buffer, body, found, threads).shrunk()
        return map_stmt(stmt, shrink)

    return replace(func, body=shrink(_simplified(func.body, {})))


def _simplified(stmt: Stmt, extents: Extents) -> Stmt:
    """Indices simplified by the extents of the loops around them, to expose the thread index."""
    if isinstance(stmt, For):
        extents = {**extents, stmt.name: stmt.extent}
    stmt = map_stmt(stmt, lambda s: _simplified(s, extents), lambda e: simplify_loads(e, extents))
    if isinstance(stmt, Store):
        return replace(stmt, indices=tuple(simplify(i, extents) for i in stmt.indices))
    return stmt


class _Part:
    """The part of a buffer that one thread uses."""

    def __init__(
        self, buffer: Buffer, body: Stmt, found: Mapping[str, ThreadMapping], threads: int
    ) -> None:
        self.buffer = buffer
        self.body = body
        self.mappings = found
        self.values = thread_values(found, threads)
        # The origin of the part, and for how many threads it is known.
        self.starts: list[Expr] | None = None
        self.active = threads
        self.sizes = [1] * len(buffer.shape)
        # The least constant in an index of each dimension: the part begins there.
        self.least: list[int] = []
        # The neighbouring columns of a fragment that a lane has.
        self.width = _lane_elements(buffer.name, body) or COLS_PER_LANE

    def shrunk(self) -> Stmt:
        """The allocation of the part, and accesses relative to its origin."""
        added = [
            self._added(indices, _inner([s for s in path if isinstance(s, For)]))
            for path, stmt in statements(self.body)
            for indices in _accesses(stmt, self.buffer.name)
        ]
        self.least = [min(numbers) for numbers in zip(*added, strict=True)]
        for path, stmt in statements(self.body):
            around = [s for s in path if isinstance(s, For)]
            for indices in _accesses(stmt, self.buffer.name):
                self._cover(indices, around)
            for region in _regions(stmt, self.buffer.name):
                self._cover_tile(region, around)
        shape = tuple(const(n) for n in self.sizes)
        return Alloc(replace(self.buffer, shape=shape), self._moved(self.body, {}))

    def _cover_tile(self, region: Region, around: list[For]) -> None:
        """Extend the part by a lane's elements of a warp's tile."""
        inner = _inner(around)
        first = [self._start(start, inner) for start, _ in region.ranges]
        row, column = fragment_origin(Var(THREAD), self.width)
        self._begin([*first[:-2], first[-2] + row, first[-1] + column], around)
        for dim, (start, extent) in enumerate(region.ranges):
            self._stretch(dim, start, start + extent - 1, inner)

    def _cover(self, indices: tuple[Expr, ...], around: list[For]) -> None:
        inner = _inner(around)
        if self.buffer.scope == FRAGMENT:
            self._check_elements(indices, inner)
        behind = self._behind(indices, inner)
        firsts = [i - n if n else i for i, n in zip(indices, behind, strict=True)]
        self._begin([self._start(i, inner) for i in firsts], around)
        for dim, (first, index) in enumerate(zip(firsts, indices, strict=True)):
            self._stretch(dim, first, index, inner)

    def _added(self, indices: tuple[Expr, ...], inner: Extents) -> list[int]:
        """The constants that are added to the origin of a thread's part."""
        return [to_affine(lower(i, inner) or const(0)).constant for i in indices]

    def _behind(self, indices: tuple[Expr, ...], inner: Extents) -> list[int]:
        """The offset of an access from the origin of the part; 0 for a fragment, which has one."""
        if self.buffer.scope == FRAGMENT or not self.least:
            return [0] * len(indices)
        added = self._added(indices, inner)
        return [a - b for a, b in zip(added, self.least, strict=True)]

    def _check_elements(self, indices: tuple[Expr, ...], inner: Extents) -> None:
        """Refuse elements of a fragment that another lane has."""
        row, column = (i - (lower(i, inner) or const(0)) for i in indices[-2:])
        by_row = self.width == ROW_ELEMENTS
        row_step, group = (1, WARP_SIZE) if by_row else (ROW_STEP, self.width * LANES_PER_ROW)
        own = prove((row % row_step).eq(0), inner) and prove(column % group < self.width, inner)
        if not own:
            raise self._error(f"is not what is read at {indices}")

    def _begin(self, starts: list[Expr], around: list[For]) -> None:
        self.active = min(self.active, self._active(around))
        known = starts if self.starts is None else self.starts
        if any(self._tidy(a) is not self._tidy(b) for a, b in zip(known, starts, strict=True)):
            raise self._error(f"starts at {known} and at {starts}")
        self.starts = starts

    def _stretch(self, dim: int, begin: Expr, end: Expr, inner: Extents) -> None:
        """Extend the part to a range of indices."""
        last, first = upper(end, inner), lower(begin, inner)
        assert last is not None
        assert first is not None
        size = Bounds({}, NATURAL).of(simplify(last - first + 1)).hi
        if size is None:
            raise self._error(f"has no constant size along dimension {dim}")
        self.sizes[dim] = max(self.sizes[dim], size)

    def _start(self, index: Expr, inner: Extents) -> Expr:
        """The lower bound of an index, as an expression of the thread index."""
        first = lower(index, inner)
        if first is None:
            raise self._error(f"is read at {index}, which depends on data")
        return substitute(first, self.values)

    def _active(self, around: list[For]) -> int:
        """The number of threads that reach an access."""
        outer = next((f for f in around if f.kind in THREAD_KINDS), None)
        return 1 if outer is None else self.mappings[outer.name].active

    def _tidy(self, start: Expr) -> Expr:
        return simplify(start, {THREAD: const(self.active)})

    def _moved(self, stmt: Stmt, inner: Extents) -> Stmt:
        """`stmt` with every index relative to the origin of the part."""
        if isinstance(stmt, For) and stmt.kind not in ("grid", *THREAD_KINDS):
            inner = {**inner, stmt.name: stmt.extent}

        def relative(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            behind = self._behind(indices, inner)
            first = [lower(i, inner) or const(0) for i in indices]
            return tuple(
                simplify(i - (start - n if n else start), inner)
                for i, start, n in zip(indices, first, behind, strict=True)
            )

        def load(e: Expr) -> Expr | None:
            if isinstance(e, Load) and e.buffer == self.buffer.name:
                return Load(e.buffer, relative(e.indices), e.dtype, e.mask)
            return None

        def region(r: Region) -> Region:
            if r.buffer != self.buffer.name:
                return r
            starts = relative(tuple(start for start, _ in r.ranges))
            extents = (extent for _, extent in r.ranges)
            return Region(r.buffer, tuple(zip(starts, extents, strict=True)))

        stmt = map_stmt(stmt, lambda s: self._moved(s, inner), lambda e: rewrite(e, load))
        if isinstance(stmt, Store) and stmt.buffer == self.buffer.name:
            return Store(stmt.buffer, relative(stmt.indices), stmt.value, stmt.mask)
        if isinstance(stmt, Tile):
            return replace(stmt, dst=region(stmt.dst), srcs=tuple(map(region, stmt.srcs)))
        return stmt

    def _error(self, what: str) -> CodegenError:
        message = f"the part of {self.buffer.name} that is one thread's {what}"
        return CodegenError("gpu.distribute", message)


def fragment_origin(thread: Expr, width: int) -> tuple[Expr, Expr]:
    """The first row and column of a warp's tile that a lane has, with `width` neighbours.

    After a row transpose: see `schedule/intrin/nvidia/fragment_shuffle.py`.
    """
    if width == ROW_ELEMENTS:
        eighth = thread % WARP_SIZE // ROW_STEP * ROW_STEP
        pair = thread % LANES_PER_ROW * COLS_PER_LANE
        return const(0), eighth + pair + thread % ROW_STEP // LANES_PER_ROW
    return thread % WARP_SIZE // LANES_PER_ROW, thread % LANES_PER_ROW * width


def _lane_elements(buffer: str, body: Stmt) -> int:
    """The neighbours that a lane has of a shuffled fragment; 0 where it was not shuffled."""
    tiles = (s for s in statements_in(body) if isinstance(s, Tile) and s.dst.buffer == buffer)
    return max((INTRINSICS[t.intrinsic].lane_elements for t in tiles if t.intrinsic), default=0)


def _inner(around: list[For]) -> dict[str, Expr]:
    """The loops inside of a thread."""
    return {f.name: f.extent for f in around if f.kind not in ("grid", *THREAD_KINDS)}


def _regions(stmt: Stmt, buffer: str) -> list[Region]:
    """The regions of a buffer that a tile statement touches."""
    found = (stmt.dst, *stmt.srcs) if isinstance(stmt, Tile) else ()
    return [r for r in found if r.buffer == buffer]


def _accesses(stmt: Stmt, buffer: str) -> list[tuple[Expr, ...]]:
    found = [x.indices for e in own_expressions(stmt) for x in loads(e) if x.buffer == buffer]
    if isinstance(stmt, Store) and stmt.buffer == buffer:
        found.append(stmt.indices)
    return found
