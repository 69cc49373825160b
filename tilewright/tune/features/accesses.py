"""A scheduled function as a list of statements, each with its loops and what they make it touch.

    for i in parallel(8) {
      for k in serial(64) { for j in vectorize(4) { C[i, j] += A[i, k] * B[k, j] } }
    }

    loops   parallel 8, serial 64, vectorize 4          operations   fma 1
    C       elements 32, 4, 4, 1    step 4, 0, 1        written, and read
    B       elements 256, 256, 4, 1 step 0, 4, 1

Elements of a buffer are those touched by one run of the loops from a level inwards, see
`index_footprint.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile

from tilewright.arith.expr import TRUE, Binary, Expr, Load
from tilewright.arith.walk import loads, subexpressions
from tilewright.ir.loop.nodes import Block, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.tiles import expand_tile
from tilewright.ir.loop.walk import Path, statements
from tilewright.target.cpu import LINE_BYTES
from tilewright.tune.features.index_footprint import IndexFootprint, footprint, of_loop
from tilewright.tune.features.op_counts import FLOPS, operations

Index = Callable[[Expr], IndexFootprint]


@dataclass(frozen=True)
class StatementAccess:
    """A buffer as one statement uses it; numbers a level, from all loops to none, or a loop.

    A `row` is how many lines lie one behind the other. `clamped` is where an index is kept inside
    of the buffer along the last loop: its elements may be anywhere.
    """

    buffer: str
    scope: str
    item: int
    reads: int
    writes: int
    elements: tuple[int, ...]
    lines: tuple[int, ...]
    row: tuple[int, ...]
    steps: tuple[int, ...]
    clamped: bool

    @property
    def accumulates(self) -> bool:
        """Whether the statement reads what it writes."""
        return self.reads > 0 and self.writes > 0


@dataclass(frozen=True)
class Statement:
    """A store inside of its loops (those that run more than once), outermost first."""

    extents: tuple[int, ...]
    kinds: tuple[str, ...]
    operations: Mapping[str, int]
    accesses: tuple[StatementAccess, ...]
    bits: int
    guarded: bool
    has_init: bool
    intrinsic: bool
    task: str = ""

    @cached_property
    def runs(self) -> int:
        """How often it runs."""
        return math.prod(self.extents)

    @cached_property
    def flops(self) -> int:
        """The operations on floats of one run."""
        return sum(FLOPS.get(kind, 0) * n for kind, n in self.operations.items())

    @property
    def forks(self) -> int:
        """How often the threads of its `task`, the outermost parallel loop, are started."""
        return math.prod(self.extents[: self.kinds.index("parallel")])

    @cached_property
    def body(self) -> int:
        """The level from which on all loops are unrolled or vectors: straight code."""
        level = len(self.kinds)
        while level and self.kinds[level - 1] in ("unroll", "vectorize"):
            level -= 1
        return level


@dataclass(frozen=True)
class _Leaf:
    """A store with what is around it, and the uses it makes of each buffer."""

    path: Sequence[Stmt]
    store: Store
    uses: Mapping[str, list[tuple[Load, bool]]]
    intrinsic: bool

    @property
    def loops(self) -> list[str]:
        """The names of the loops around it, outermost first."""
        return [s.name for s in self.path if isinstance(s, For)]


def statements_of(func: Func, known: Mapping[str, Buffer]) -> list[Statement]:
    """The statements of a function in order, with its buffers; a sum's start counts with it."""
    leaves = list(_leaves(func, known))
    homes: dict[str, list[str]] = {}
    given = {b.name for b in func.params}
    for leaf in leaves:
        for name in leaf.uses.keys() - given:
            shared = zip(homes.get(name, leaf.loops), leaf.loops, strict=False)
            homes[name] = [a for a, b in takewhile(lambda pair: pair[0] == pair[1], shared)]
    return [_statement(leaf, known, homes) for leaf in leaves]


def _leaves(func: Func, known: Mapping[str, Buffer]) -> Iterator[_Leaf]:
    for path, stmt in statements(func.body):
        if isinstance(stmt, Store) and not _in_init(path, stmt):
            yield _Leaf(path, stmt, _uses(stmt), False)
        elif isinstance(stmt, Tile):
            inner, store = _expanded(stmt, known)
            yield _Leaf((*path, *inner), store, _uses(store), True)


def _uses(store: Store) -> dict[str, list[tuple[Load, bool]]]:
    found: dict[str, list[tuple[Load, bool]]] = {}
    for load in loads(store.value):
        found.setdefault(load.buffer, []).append((load, False))
    found.setdefault(store.buffer, []).append((store.target, True))
    return found


def _in_init(path: Path, stmt: Stmt) -> bool:
    inner = (*path, stmt)
    return any(isinstance(block, Block) and block.init is child for block, child in pairwise(inner))


def _expanded(tile: Tile, known: Mapping[str, Buffer]) -> tuple[list[For], Store]:
    """The loops that a tile stands for, all of them straight code, and the store inside."""
    loops: list[For] = []
    stmt = expand_tile(tile, known)
    while isinstance(stmt, For):
        loops.append(For(stmt.name, stmt.extent, "unroll", stmt.body))
        stmt = stmt.body
    assert isinstance(stmt, Store)
    return loops, stmt


def _statement(
    leaf: _Leaf, known: Mapping[str, Buffer], homes: Mapping[str, Sequence[str]]
) -> Statement:
    loops, env = _environment(leaf.path)
    memo: dict[Expr, IndexFootprint] = {}
    inside = {name: place for place, (name, _, _) in enumerate(loops, 1)}
    accesses = []
    for name, uses in leaf.uses.items():
        home = max((inside.get(loop, 0) for loop in homes.get(name, ())), default=0)
        shape = _Shape(known[name], len(loops), home, name in homes)
        accesses.append(shape.access(uses, lambda e: footprint(e, env, memo)))
    around = [s for s in leaf.path if isinstance(s, Block)]
    return Statement(
        tuple(extent for _, extent, _ in loops),
        tuple(kind for _, _, kind in loops),
        operations(leaf.store.value),
        tuple(accesses),
        leaf.store.value.dtype.bits,
        any(b.predicate is not TRUE for b in around) or _masked(leaf),
        any(b.init is not None for b in around),
        leaf.intrinsic,
        next((name for name, _, kind in loops if kind == "parallel"), ""),
    )


def _masked(leaf: _Leaf) -> bool:
    uses = (load for every in leaf.uses.values() for load, _ in every)
    return leaf.store.mask is not None or any(load.mask is not None for load in uses)


def _environment(
    path: Sequence[Stmt],
) -> tuple[list[tuple[str, int, str]], dict[str, IndexFootprint]]:
    """The loops that run more than once, and how every variable of the nest moves."""
    extents: dict[str, int] = {}
    still: dict[str, IndexFootprint] = {}
    memo: dict[Expr, IndexFootprint] = {}
    for s in path:
        if isinstance(s, For):
            extents[s.name] = max(1, footprint(s.extent, still, memo).greatest)
            still[s.name] = IndexFootprint(0)
    kinds = {s.name: s.kind for s in path if isinstance(s, For)}
    moving = [name for name, extent in extents.items() if extent > 1]
    env = dict(still)
    for place, name in enumerate(moving):
        env[name] = of_loop(place, len(moving), extents[name])
    memo = {}
    for s in path:
        if isinstance(s, Block):
            env.update({it.name: footprint(it.binding, env, memo) for it in s.iters})
            memo = {}  # an inner block may call its iterators alike
    return [(name, extents[name], kinds[name]) for name in moving], env


@dataclass(frozen=True)
class _Shape:
    """A buffer in a nest of `depth` loops.

    One that is `own` to the function lives within its `home`, the outermost loops that all its uses
    share, and has there the size that they touch: see `finalize/compact_buffers.py`.
    """

    buffer: Buffer
    depth: int
    home: int
    own: bool

    def access(self, uses: list[tuple[Load, bool]], index: Index) -> StatementAccess:
        """All uses together: they overlap where they are several, so the widest counts."""
        moves = [[index(i) for i in load.indices] for load in dict(uses)]
        sizes = self._sizes(moves, index)
        every = [self._touched(move, sizes) for move in moves]
        elements, lines, row = (
            tuple([max(column) for column in zip(*(one[part] for one in every), strict=True)])
            for part in range(3)
        )
        writes = sum(is_write for _, is_write in uses)
        return StatementAccess(
            self.buffer.name,
            self.buffer.scope,
            self.buffer.dtype.bytes,
            len(uses) - writes,
            writes,
            elements,
            lines,
            row,
            every[0][3],
            self.depth > 0 and any(_clamped(i, index) for load, _ in uses for i in load.indices),
        )

    def _sizes(self, moves: list[list[IndexFootprint]], index: Index) -> list[int]:
        sizes = [max(1, index(d).base) for d in self.buffer.shape]
        if not self.own:
            return sizes
        return [
            max(min(n, m[i].width[self.home] + 1) if m[i].width else 1 for m in moves)
            for i, n in enumerate(sizes)
        ]

    def _touched(
        self, moves: list[IndexFootprint], sizes: list[int]
    ) -> tuple[list[int], list[int], list[int], tuple[int, ...]]:
        """Elements, cache lines and lines a row at each level, and the step along each loop."""
        places = range(self.home, self.depth + 1)
        elements, held, span = [1] * len(places), [1] * len(places), [1] * len(places)
        whole = [True] * len(places)  # whether all inner dimensions are touched from end to end
        steps = [0] * self.depth
        stride = 1
        for size, moved in zip(reversed(sizes), reversed(moves), strict=True):
            for place, level in enumerate(places):
                count = min(moved.values[level], size) if moved.width else 1
                elements[place] *= count
                if whole[place]:
                    held[place] *= count
                    span[place] *= min(moved.width[level] + 1, size) if moved.width else 1
                    whole[place] = count == size
            for loop, step in enumerate(moved.step[self.home :], self.home):
                steps[loop] += min(step, size) * stride
            stride *= size
        item = self.buffer.dtype.bytes
        row = [-(-wide * item // LINE_BYTES) for wide in span]
        lines = [n // one * min(one, r) for n, one, r in zip(elements, held, row, strict=True)]
        outer = self.home
        return (
            [elements[0]] * outer + elements,
            [lines[0]] * outer + lines,
            [row[0]] * outer + row,
            tuple(steps),
        )


def _clamped(i: Expr, index: Index) -> bool:
    """Whether an index is kept within bounds by a minimum or maximum along the last loop."""
    return isinstance(i, Binary) and any(
        isinstance(e, Binary) and e.op in ("min", "max") and _moves_last(index(e))
        for e in subexpressions(i)
    )


def _moves_last(moved: IndexFootprint) -> bool:
    return bool(moved.step) and moved.step[-1] != 0
