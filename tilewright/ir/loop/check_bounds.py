"""Whether every access of a loop function lies within its buffer, proved for all sizes.

VerifyError[loop.bounds]: block "mm" reads A[i + 1, k]: index 0 cannot be shown to be below M
   4 |       { C[i, j] += A[i + 1, k] * B[k, j] }
     |                    ^^^^^^^^^^^
  help: change the index, or guard it: A[...] ? condition

Loops that the compiler made pass; loops that a person edited may not, and an access outside of a
buffer would end the process. A `select` is no guard, since both of its sides are computed.

The compiler knows more than its loops say: which sizes are equal, what a table holds. An access
that cannot be proved is accepted where the function before it was edited has the same one under
the same loops and conditions. Of an index that is read from memory, the buffer must in addition not
be written by the function, unless nothing was edited at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tilewright.arith.expr import Expr, Load, const, unary
from tilewright.arith.prove_within import ProveWithin
from tilewright.arith.simplify import simplify
from tilewright.arith.text import print_expr
from tilewright.arith.walk import conjuncts, loads, substitute
from tilewright.core.errors import VerifyError
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, If, Let, Region, Stmt, Store, Tile
from tilewright.ir.loop.text import print_region, stmt_excerpt
from tilewright.ir.loop.tiles import is_padded_copy
from tilewright.ir.loop.walk import (
    child_stmts,
    own_expressions,
    own_regions,
    touched_buffers,
)
from tilewright.ir.types import Shape

HELP = "change the index, or guard the access: a `?` mask, an `if`, the `where` of its block"


@dataclass(frozen=True)
class _Context:
    """What is known where a statement stands; iterators and lets are replaced by their values."""

    extents: Mapping[str, Expr] = field(default_factory=dict)
    facts: tuple[Expr, ...] = ()
    bindings: Mapping[str, Expr] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    block: str = ""

    def bound(self, e: Expr) -> Expr:
        """An expression over loop variables and sizes."""
        return simplify(substitute(e, self.bindings))

    def given(self, *conditions: Expr) -> _Context:
        """The same place under further conditions."""
        new = tuple(c for whole in conditions for c in conjuncts(self.bound(whole)))
        return replace(self, facts=(*self.facts, *new)) if new else self


@dataclass(frozen=True)
class _Access:
    """A region that a statement reads or writes, `text` as it is written."""

    stmt: Stmt
    context: _Context
    verb: str
    region: Region
    text: str

    def key(self) -> tuple[object, ...]:
        """All that decides whether it is in bounds."""
        c = self.context
        ranges = tuple((c.bound(start), c.bound(extent)) for start, extent in self.region.ranges)
        shape = tuple(map(c.bound, c.shapes[self.region.buffer]))
        return self.region.buffer, ranges, shape, tuple(c.extents.items()), c.facts

    def unproved(self) -> str:
        """What cannot be shown, `index 0 cannot be shown to be below N`; nothing if all can."""
        c, shape = self.context, self.context.shapes[self.region.buffer]
        within = ProveWithin(c.extents, c.facts)
        for n, ((start, extent), size) in enumerate(zip(self.region.ranges, shape, strict=True)):
            limit, end = c.bound(size), c.bound(start + extent)
            if not within.nonneg(c.bound(start)):
                return f"index {n} cannot be shown to be at least 0"
            if not within.nonneg(simplify(limit - end)):
                return f"index {n} cannot be shown to be below {limit}"
        return ""

    def tables(self) -> set[str]:
        """The buffers that its indices are read from."""
        return {load.buffer for start, _ in self.region.ranges for load in loads(start)}


def check_bounds(func: Func, original: Func) -> None:
    """Raise a `VerifyError` for the first access that cannot be shown to be in bounds.

    `original` is what the compiler made and a person may have edited.
    """
    if func.body == original.body:
        return
    known = {access.key() for access in _accesses(original)}
    written = touched_buffers(func.body)[1]
    for access in _accesses(func):
        unproved = access.unproved()
        if not unproved or (access.key() in known and not access.tables() & written):
            continue
        block = access.context.block
        who = f'block "{block}"' if block else f"function {func.name}"
        raise VerifyError(
            "loop.bounds",
            f"{who} {access.verb} {access.text}: {unproved}",
            loc=func.loc,
            notes=stmt_excerpt(func, access.stmt, access.text),
            help=HELP,
        )


def unproved_accesses(func: Func) -> list[str]:
    """The accesses of a function that cannot be shown to be in bounds, each with the reason."""
    found = ((access, access.unproved()) for access in _accesses(func))
    return [f"{access.text}: {unproved}" for access, unproved in found if unproved]


def _accesses(func: Func) -> Iterator[_Access]:
    pending = [(func.body, _Context(shapes={b.name: b.shape for b in func.params}))]
    while pending:
        s, c = pending.pop()
        yield from _own_accesses(s, c)
        pending += reversed(list(_children(s, c)))


def _own_accesses(s: Stmt, c: _Context) -> Iterator[_Access]:
    for read in _reads(s):
        inside = c if read.mask is None else c.given(read.mask)
        yield _Access(s, inside, "reads", _element(read.buffer, read.indices), print_expr(read))
    if isinstance(s, Store):
        inside = c if s.mask is None else c.given(s.mask)
        text = print_expr(s.target)
        yield _Access(s, inside, "writes", _element(s.buffer, s.indices), text)
    for verb, regions in zip(("reads", "writes"), own_regions(s), strict=True):
        if verb == "reads" and isinstance(s, Tile) and is_padded_copy(s):
            continue  # zeros where that is outside
        for region in regions:
            yield _Access(s, c, verb, region, print_region(region))


def _element(buffer: str, indices: tuple[Expr, ...]) -> Region:
    return Region(buffer, tuple((i, const(1)) for i in indices))


def _reads(s: Stmt) -> Iterator[Load]:
    """The loads that a statement itself makes; the signature of a block makes none."""
    if isinstance(s, Block):
        parts: tuple[Expr, ...] = (s.predicate, *(it.binding for it in s.iters))
    else:
        parts = own_expressions(s)
    for e in parts:
        yield from loads(e)


def _children(s: Stmt, c: _Context) -> Iterator[tuple[Stmt, _Context]]:
    match s:
        case For():
            yield s.body, replace(c, extents={**c.extents, s.name: c.bound(s.extent)})
        case If():
            yield s.then, c.given(s.cond)
            if s.orelse is not None:
                yield s.orelse, c.given(unary("not", s.cond))
        case Alloc():
            shape = tuple(map(c.bound, s.buffer.shape))
            yield s.body, replace(c, shapes={**c.shapes, s.buffer.name: shape})
        case Let():
            yield s.body, replace(c, bindings={**c.bindings, s.name: c.bound(s.value)})
        case Block():
            inner = c.given(s.predicate)
            bindings = {it.name: c.bound(it.binding) for it in s.iters}
            inner = replace(inner, bindings=bindings, block=s.name)
            for part in child_stmts(s):
                yield part, inner
        case _:
            for child in child_stmts(s):
                yield child, c
