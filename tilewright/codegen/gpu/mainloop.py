"""What a kernel consists of in which some threads only copy: see `warp_specialized.py`.

for b in grid(64) {
  copy queries                        a ring that is filled once a turn
  formulas                            before
  for k in serial(n) {pipeline_stages=2, warp_specialized=1} {
    copy keys; copy values            rings that are filled in each step
    S = A * K                         first
    formulas of S                     beside
    formulas of O and W               late
    O += W * V                        second
  }
  formulas                            after
}

A walk with one product has one ring, of both operands, and nothing beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.warp_specialize import mainloop_of
from tilewright.ir.loop.nodes import Alloc, Barrier, For, Seq, Stmt, Tile
from tilewright.ir.loop.walk import statements, touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS


@node
class Ring:
    """Buffers with room for several steps, and the copies that fill the room of one."""

    buffers: tuple[str, ...]
    copies: tuple[Tile, ...]


@node
class ProductParts:
    """The statements of a block of threads whose walk has one product."""

    walk: For
    ring: Ring
    before: tuple[Stmt, ...]
    product: Stmt
    after: tuple[Stmt, ...]


@node
class WalkParts:
    """The same where it has two.

    `rings` are what the first product reads, what the second does, and what is there for all steps
    of the walk.
    """

    walk: For
    rings: tuple[Ring, ...]
    before: tuple[Stmt, ...]
    first: Stmt
    beside: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    second: Stmt
    after: tuple[Stmt, ...]


def has_one_product(body: Stmt) -> bool:
    """Whether the walk in the body of a grid loop has one product."""
    walk = mainloop_of(body)
    assert walk is not None
    return sum(map(bool, map(products, _flat(walk.body)))) == 1


def product_parts(body: Stmt) -> ProductParts:
    """The parts of the body of a grid loop whose walk has one product."""
    walk = mainloop_of(body)
    assert walk is not None
    rest, steps = _flat(body), _flat(walk.body)
    copies = tuple(s for s in steps if isinstance(s, Tile) and copied(s))
    (product,) = (s for s in steps if products(s))
    if len(steps) != len(copies) + 1:
        raise CodegenError("gpu.apart", f"loop {walk.name} has formulas beside its product")
    place = next(n for n, s in enumerate(rest) if s is walk)
    ring = Ring(tuple(dict.fromkeys(map(copied, copies))), copies)
    return ProductParts(walk, ring, tuple(rest[:place]), product, tuple(rest[place + 1 :]))


def walk_parts(body: Stmt) -> WalkParts:
    """The parts of the body of a grid loop whose walk has two."""
    walk = mainloop_of(body)
    assert walk is not None
    rest, steps = _flat(body), _flat(walk.body)
    found = [s for s in steps if products(s)]
    if len(found) != 2:
        raise CodegenError("gpu.apart", f"loop {walk.name} has not two products")
    first, second = found
    names = [_ring(p, steps) for p in found]
    names += sorted({copied(s) for s in rest} - {""})
    tiles = [s for s in (*steps, *rest) if isinstance(s, Tile)]
    rings = tuple(Ring((name,), tuple(s for s in tiles if copied(s) == name)) for name in names)
    own = [s for s in rest if not copied(s)]
    place = next(n for n, s in enumerate(own) if s is walk)
    before, after = tuple(own[:place]), tuple(own[place + 1 :])
    between = steps[steps.index(first) + 1 : steps.index(second)]
    beside, late = _parted(walk, between, _touched((second,)) - {*names})
    return WalkParts(walk, rings, before, first, beside, late, second, after)


def _parted(
    walk: For, between: list[Stmt], busy: set[str]
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Formulas that touch nothing of the product that is under way, and the others."""
    beside = tuple(s for s in between if not busy & _touched((s,)))
    late = tuple(s for s in between if busy & _touched((s,)))
    written = {name for s in late for name in touched_buffers(s)[1]}
    if written & _touched(beside):
        raise CodegenError("gpu.apart", f"formulas of {walk.name} wait for a product")
    return beside, late


def _touched(stmts: Iterable[Stmt]) -> set[str]:
    return set[str]().union(*(names for s in stmts for names in touched_buffers(s)))


def _ring(product: Stmt, steps: list[Stmt]) -> str:
    """What a product reads that is copied in each step."""
    filled = {copied(s) for s in steps}
    found = {r.buffer for t in products(product) for r in t.srcs if r.buffer in filled}
    if len(found) != 1:
        raise CodegenError("gpu.apart", "a product reads not one operand that is copied")
    return found.pop()


def _flat(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, without allocations around them, and without barriers."""
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    if isinstance(stmt, Seq):
        return [x for s in stmt.stmts for x in _flat(s)]
    return [] if isinstance(stmt, Barrier) else [stmt]


def products(stmt: Stmt) -> list[Tile]:
    """The instructions in a statement that may be left under way."""
    tiles = (s for _, s in statements(stmt) if isinstance(s, Tile) and s.srcs)
    return [t for t in tiles if INTRINSICS[t.intrinsic].settle]


def copied(stmt: Stmt) -> str:
    """The buffer that a statement has a tile copied to, "" if it does something else."""
    if isinstance(stmt, Tile) and INTRINSICS[stmt.intrinsic].box:
        return stmt.dst.buffer
    return ""
