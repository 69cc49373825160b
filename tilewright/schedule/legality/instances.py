"""The instances of a function's blocks: when each runs, and which elements it touches.

Time is a vector: the position among what stands in the function's body, the value of the first
loop, the position in that loop's body, the value of the second loop, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tilewright.arith.expr import Expr, Load, Var, as_int, const
from tilewright.arith.isl import ParamSpace, Relation
from tilewright.arith.memo import Memo
from tilewright.arith.walk import subexpressions
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, For, Func, Region, Stmt
from tilewright.ir.loop.walk import child_stmts

ZERO = const(0)


@node
class Access:
    """A region of a buffer that a block touches; `carried` where a reduction accumulates in it."""

    region: Region
    writes: bool
    carried: bool


@node
class Place:
    """A block with the loops around it and its position among the items of each."""

    block: Block
    loops: tuple[For, ...]
    positions: tuple[int, ...]


def places(func: Func) -> dict[str, Place]:
    """Every block by name with where it runs; the blocks inside a block belong to it."""
    found: dict[str, Place] = {}

    def visit(stmt: Stmt, loops: tuple[For, ...], positions: tuple[int, ...]) -> None:
        for n, item in enumerate(_items(stmt)):
            if isinstance(item, For):
                visit(item.body, (*loops, item), (*positions, n))
            elif isinstance(item, Block):
                found[item.name] = Place(item, loops, (*positions, n))

    visit(func.body, (), ())
    return found


def _items(stmt: Stmt) -> Iterator[Stmt]:
    """The loops and leaves directly in a loop's body, through all that takes no time of its own."""
    children = child_stmts(stmt)
    if isinstance(stmt, For | Block) or not children:
        yield stmt
        return
    for child in children:
        yield from _items(child)


# Relations take milliseconds to build, and a step leaves most blocks where they are.
_RELATIONS: Memo[tuple[object, ...], Relation] = Memo()


class Instances:
    """Relations of a function's block instances; times have `width` positions."""

    def __init__(self, found: Mapping[str, Place], space: ParamSpace, width: int) -> None:
        self.places = found
        self.space = space
        self.width = width

    def accesses(self) -> dict[str, list[tuple[Place, Access]]]:
        """What is touched, by buffer, where anything writes it."""
        found: dict[str, list[tuple[Place, Access]]] = {}
        for place in self.places.values():
            for access in _accesses(place.block):
                found.setdefault(access.region.buffer, []).append((place, access))
        return {b: items for b, items in found.items() if any(a.writes for _, a in items)}

    def time(self, place: Place) -> Relation:
        """When each instance of a block runs."""
        return self._kept(("time", self._key(place)), lambda: self._time(place))

    def first_time(self, place: Place) -> Relation:
        """When each instance of a block runs for the first time."""
        return self._kept(("first", self._key(place)), lambda: self.time(place).first())

    def elements(self, place: Place, access: Access) -> Relation:
        """The elements that each instance touches by an access."""
        b = place.block
        domain = tuple((it.name, it.extent) for it in b.iters)
        return self._kept((b.name, domain, access.region), lambda: self._region(b, access.region))

    def dependent(self, a: Place, first: Access, b: Place, second: Access) -> Relation:
        """The instances of `a` and later ones of `b` that touch a common element."""

        def make() -> Relation:
            shared = self.elements(a, first).meets(self.elements(b, second))
            return shared & self.first_time(a).before(self.first_time(b))

        return self._kept((self._key(a), first.region, self._key(b), second.region), make)

    def _kept(self, key: tuple[object, ...], make: Callable[[], Relation]) -> Relation:
        key = (self.space.sizes, *key)
        found = _RELATIONS.get(key)
        return found if found is not None else _RELATIONS.keep(key, make())

    def _key(self, place: Place) -> tuple[object, ...]:
        """All that the times of a block's instances depend on."""
        b = place.block
        loops = tuple((f.name, f.extent) for f in place.loops)
        return b.name, b.iters, b.predicate, loops, place.positions, self.width

    def _time(self, place: Place) -> Relation:
        block = place.block
        image: list[Expr] = [const(place.positions[0])]
        conditions: list[Expr] = [Var(it.name).eq(it.binding) for it in block.iters]
        for loop, position in zip(place.loops, place.positions[1:], strict=True):
            image += [Var(loop.name), const(position)]
            conditions += [ZERO <= Var(loop.name), Var(loop.name) < loop.extent]
        image += [ZERO] * (2 * self.width - 1 - len(image))
        return self.space.relation(
            [it.name for it in block.iters],
            image,
            [*conditions, block.predicate],
            names=(_tuple_name(block), "time"),
        )

    def _region(self, block: Block, region: Region) -> Relation:
        domain = [it.name for it in block.iters]
        conditions: list[Expr] = []
        for it in block.iters:
            conditions += [ZERO <= Var(it.name), Var(it.name) < it.extent]
        image = [Var(f"{region.buffer}.{n}") for n in range(len(region.ranges))]
        for x, (start, extent) in zip(image, region.ranges, strict=True):
            # An index that depends on data may be any.
            if not any(isinstance(e, Load) for e in subexpressions(start)):
                exact = as_int(extent) == 1
                conditions += [x.eq(start)] if exact else [start <= x, x < start + extent]
        return self.space.relation(domain, image, conditions, names=(_tuple_name(block), "element"))

    def never_before(self, a: Place, b: Place) -> bool:
        """Whether no instance of `a` can run before one of `b`, by their order alone."""
        return not self.shared_loops(a, b) and a.positions[0] >= b.positions[0]

    def shared_loops(self, a: Place, b: Place) -> list[For]:
        """The loops around both blocks."""
        return [x for x, y in zip(a.loops, b.loops, strict=False) if x is y]


def _accesses(block: Block) -> Iterator[Access]:
    targets = [r.ranges for r in block.writes]
    reduces = any(it.kind == "R" for it in block.iters)
    for r in block.writes:
        yield Access(r, writes=True, carried=reduces)
    for r in block.reads:
        yield Access(r, writes=False, carried=reduces and r.ranges in targets)


def _tuple_name(block: Block) -> str:
    """A name for isl, which allows letters and digits only; equal for equal blocks."""
    return "b_" + "".join(c if c.isalnum() else f"_{ord(c)}_" for c in block.name)
