"""What a verified statement needs of the function around it, so that it is verified once.

A primitive rewrites a few statements and keeps the others as the very objects that they were. One
that was verified before is right in the new function too if the names around it mean the same:

    for j in serial(4) {
      block "C" [vi: S(8) = i * 4 + j] reads A[vi] writes C[vi] { C[vi] = A[vi] * n }
    }

needs the buffers A and C with their types and ranks, C writable, `i` bound by a loop around it, no
loop or block that binds `n`, and no other loop `j` or block "C".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tilewright.arith.expr import Expr
from tilewright.arith.walk import free_vars, loads
from tilewright.ir.loop.nodes import Alloc, Block, For, Let, Stmt, Store
from tilewright.ir.loop.walk import child_stmts, own_expressions, own_regions
from tilewright.ir.verify_expr import Signature

_NONE: frozenset[str] = frozenset()


class Names(Protocol):
    """What a verifier has seen declared when it comes to a statement."""

    buffers: dict[str, Signature]  # those in scope
    writable: set[str]
    scope: frozenset[str]  # variables of the loops, or of the block, around the statement
    bound: frozenset[str]  # variables that a loop or block binds somewhere in the function
    loop_names: set[str]
    block_names: set[str]


@dataclass(frozen=True, slots=True)
class Context:
    """The names that a statement takes from outside and what they meant, and those it declares."""

    buffers: Mapping[str, Signature]
    written: frozenset[str] = _NONE
    around: frozenset[str] = _NONE  # variables that are in scope if anything binds them
    sizes: frozenset[str] = _NONE  # variables that nothing binds
    iters: frozenset[str] = _NONE  # iterators of blocks, which must differ from the loops around
    loops: frozenset[str] = _NONE
    blocks: frozenset[str] = _NONE

    def holds(self, names: Names) -> bool:
        """Whether the statement is right among `names`, too."""
        return (
            self.buffers.items() <= names.buffers.items()
            and self.written <= names.writable
            and (self.around & names.bound) <= names.scope
            and self.sizes.isdisjoint(names.bound)
            and self.iters.isdisjoint(names.scope)
            and self.loops.isdisjoint(names.loop_names)
            and self.blocks.isdisjoint(names.block_names)
        )

    def declare(self, names: Names) -> None:
        """Add what it declares to `names`."""
        names.loop_names |= self.loops
        names.block_names |= self.blocks


@dataclass(slots=True)
class VerifiedStmts:
    """The statements that were verified so far, by identity; kept, so that each id stays theirs."""

    _known: dict[int, tuple[Stmt, Context]] = field(default_factory=dict)
    _bound: dict[int, tuple[Stmt, frozenset[str]]] = field(default_factory=dict)

    def holds(self, stmt: Stmt, names: Names) -> bool:
        """Whether this very statement was verified and is right here; then it is declared."""
        found = self._known.get(id(stmt))
        if found is None or not found[1].holds(names):
            return False
        found[1].declare(names)
        return True

    def add(self, stmt: Stmt, names: Names) -> None:
        """Remember a statement that was found to be right among `names`.

        Allocations and what is around them are not worth it: almost every step changes something
        inside of them.
        """
        children = [self._known.get(id(child)) for child in child_stmts(stmt)]
        if not isinstance(stmt, Alloc) and None not in children:
            contexts = [found[1] for found in children if found is not None]
            self._known[id(stmt)] = stmt, _context(stmt, contexts, names)

    def bound_in(self, stmt: Stmt) -> frozenset[str]:
        """The variables that loops, lets and blocks bind, at any depth."""
        found = self._bound.get(id(stmt))
        if found is not None:
            return found[1]
        own = (stmt.name,) if isinstance(stmt, For | Let) else ()
        iters = (it.name for it in stmt.iters) if isinstance(stmt, Block) else ()
        bound = frozenset((*own, *iters)).union(*map(self.bound_in, child_stmts(stmt)))
        self._bound[id(stmt)] = stmt, bound
        return bound


def _context(stmt: Stmt, children: list[Context], names: Names) -> Context:
    if isinstance(stmt, For | Let):
        (body,) = children
        (own,) = own_expressions(stmt)
        read = {load.buffer: names.buffers[load.buffer] for load in loads(own)}
        return replace(
            body,
            buffers={**body.buffers, **read} if read else body.buffers,
            around=(body.around - {stmt.name}) | free_vars(own),
            loops=body.loops | {stmt.name},
        )
    reads, written = _accessed(stmt)
    buffers = {name: names.buffers[name] for name in reads | written}
    for child in children:
        buffers.update(child.buffers)
    inside = _NONE.union(*(c.around for c in children))
    whole = Context(
        buffers,
        written.union(*(c.written for c in children)),
        inside.union(*map(free_vars, own_expressions(stmt))),
        _NONE.union(*(c.sizes for c in children)),
        _NONE.union(*(c.iters for c in children)),
        _NONE.union(*(c.loops for c in children)),
        _NONE.union(*(c.blocks for c in children)),
    )
    return _of_block(stmt, whole, inside) if isinstance(stmt, Block) else whole


def _accessed(stmt: Stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The buffers that a statement reads itself, or names in its signature, and those it writes."""
    read = frozenset(load.buffer for e in own_expressions(stmt) for load in loads(e))
    match stmt:
        case Store(buffer):
            return read, frozenset((buffer,))
        case Block():
            return read | {r.buffer for r in stmt.reads + stmt.writes}, _NONE
    regions = own_regions(stmt)
    reads, writes = (frozenset(r.buffer for r in found) for found in regions)
    return read | reads, writes


def _variables(expressions: Iterable[Expr]) -> frozenset[str]:
    return _NONE.union(*map(free_vars, expressions))


def _of_block(block: Block, whole: Context, inside: frozenset[str]) -> Context:
    """The code `inside` a block, and its regions, see its iterators and no variable around it."""
    iters = frozenset(it.name for it in block.iters)
    domains = [e for it in block.iters for e in (it.extent, it.binding)]
    ranges = [pair for r in block.reads + block.writes for pair in r.ranges]
    hidden = inside | _variables(e for pair in ranges for e in pair)
    return replace(
        whole,
        around=_variables((*domains, block.predicate)),
        sizes=whole.sizes | (hidden - iters),
        iters=iters,
        blocks=whole.blocks | {block.name},
    )
