"""What a reduction block is made of: its operation, and its spatial loops on their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.arith.affine import to_affine
from tilewright.arith.dtype_limits import neutral, neutral_of_parts
from tilewright.arith.expr import TRUE, Binary, Cast, Expr, Load, Var, as_int, const
from tilewright.arith.operators import COMBINE
from tilewright.arith.simplify import prove
from tilewright.arith.walk import conjuncts, free_vars, loads, substitute
from tilewright.core.node import node
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Annotations, Block, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.walk import loops
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import check_loop_free

_REDUCTION_OF = {op: reduction for reduction, op in COMBINE.items()}


@node
class Reduction:
    """`target = target op term`, started with the neutral element of `op`."""

    op: str
    target: Load
    term: Expr
    start: Expr
    start_of_parts: Expr


@node
class SpatialNest:
    """Copies of the spatial loops around a block, with its spatial iterators bound to them."""

    loops: tuple[For, ...]
    iters: tuple[Iter, ...]
    predicate: Expr

    def around(self, body: Stmt) -> Stmt:
        """`body` within the loops."""
        for f in reversed(self.loops):
            body = replace(f, body=body)
        return body


def bound_loops(block: Block, kind: str) -> frozenset[str]:
    """The variables that the iterators of one kind are bound to."""
    return frozenset().union(*(free_vars(it.binding) for it in block.iters if it.kind == kind))


def _loops_of_kinds(func: Func, block: Block) -> tuple[frozenset[str], frozenset[str]]:
    """Loops that spatial and reduction iterators are bound to: no sizes, which both may have."""
    named = frozenset(f.name for f in loops(func.body))
    return bound_loops(block, "S") & named, bound_loops(block, "R") & named


def check_unmixed(func: Func, block: Block, step: str) -> None:
    """Refuse a block of which one loop is bound to both kinds of iterators."""
    spatial, reduced = _loops_of_kinds(func, block)
    if mixed := spatial & reduced:
        message = f'loop {min(mixed)} is bound to spatial and reduction iterators of "{block.name}"'
        raise refuse(func, f"{step}.mixed", message, block)


def split_predicate(func: Func, block: Block, step: str) -> tuple[Expr, Expr]:
    """The predicate's conditions on spatial loops, and those on reduction loops.

    A condition on both is one of the latter, if every element has its first term.
    """
    spatial, reduced = _loops_of_kinds(func, block)
    extents = {f.name: f.extent for f in loops(func.body)}
    parts: list[Expr] = [TRUE, TRUE]
    for condition in conjuncts(block.predicate):
        used = free_vars(condition)
        first = substitute(condition, {name: const(0) for name in used & reduced})
        if used & reduced and used & spatial and not prove(first, extents):
            message = f"the condition {condition} mixes spatial and reduction loops"
            raise refuse(func, f"{step}.predicate", message, block)
        place = 1 if used & reduced else 0
        parts[place] = parts[place] & condition
    return parts[0], parts[1]


def spatial_nest(
    func: Func, block: Block, around: Sequence[For], prefix: str, step: str
) -> SpatialNest:
    """Copies, called `<prefix>.ax0, ...`, of those loops among `around` that are spatial."""
    check_unmixed(func, block, step)
    condition = split_predicate(func, block, step)[0]
    # A loop that runs once may be bound to nothing and yet be guarded.
    spatial = bound_loops(block, "S") | free_vars(condition)
    old = [f for f in around if f.name in spatial]
    names = [f"{prefix}.ax{n}" for n in range(len(old))]
    check_loop_free(func, *names)
    moved: dict[str, Expr] = {f.name: Var(new) for f, new in zip(old, names, strict=True)}
    loops = tuple(
        replace(f, name=new, extent=substitute(f.extent, moved), annotations=_row_notes(f))
        for f, new in zip(old, names, strict=True)
    )
    iters = tuple(
        Iter(it.name, "S", it.extent, substitute(it.binding, moved))
        for it in block.iters
        if it.kind == "S"
    )
    return SpatialNest(loops, iters, substitute(condition, moved))


def _row_notes(loop: For) -> Annotations:
    """The annotations of a loop that its copies need: there are as many rows in all of them."""
    return tuple(note for note in loop.annotations if note[0] == EDGE_ROWS.key)


def reduction_of(func: Func, block: Block, step: str) -> Reduction:
    """The operation of a block that still starts its own reduction."""
    init, body = block.init, block.body
    if not isinstance(init, Store) or not isinstance(body, Store) or body.mask is not None:
        message = f'block "{block.name}" is not a reduction of one store and what starts it'
        raise refuse(func, f"{step}.reduction", message, block)
    target = body.target
    if not isinstance(body.value, Binary) or init.target is not target:
        raise _no_reduction(func, block, step)
    a, b = body.value.a, body.value.b
    term = b if a is target else a
    reduction = _REDUCTION_OF.get(body.value.op)
    carried = (a is target or b is target) and target not in loads(term)
    if reduction is None or not carried:
        raise _no_reduction(func, block, step)
    of_parts = neutral_of_parts(reduction, target.dtype)
    if init.value is not of_parts and init.value is not neutral(reduction, target.dtype):
        raise _no_reduction(func, block, step)
    return Reduction(body.value.op, target, term, init.value, of_parts)


def is_product(term: Expr) -> bool:
    """Whether a term is zero where all that it loads is."""
    match term:
        case Load():
            return True
        case Cast():
            return is_product(term.a)
        case Binary("mul", a, b):
            return is_product(a) and is_product(b)
    return False


def _no_reduction(func: Func, block: Block, step: str) -> Exception:
    message = f'block "{block.name}" does not reduce with one of {", ".join(COMBINE.values())}'
    return refuse(func, f"{step}.operation", message, block)


def check_once(func: Func, block: Block, around: Sequence[For], step: str, own: bool) -> None:
    """Refuse loops that may run an instance of the block again, as those of consumers do.

    Quotients and remainders, which come from `fuse`, are trusted where the loops are the block's
    own.
    """
    extents = {f.name: f.extent for f in around}
    seen: set[str] = set()
    for it in block.iters:
        used = free_vars(it.binding) & set(extents)
        atoms = _moving(it.binding, extents)
        if all(isinstance(atom, Var) for atom in atoms):
            distinct = not used & seen and _is_mixed_radix(it.binding, extents)
        else:
            distinct = own and all(isinstance(a, Var) or _is_part(a) for a in atoms)
        if not distinct:
            raise _repeated(func, block, step)
        seen |= used
    if any(as_int(f.extent) != 1 for f in around if f.name not in seen):
        raise _repeated(func, block, step)


def _is_part(atom: Expr) -> bool:
    return isinstance(atom, Binary) and atom.op in ("floordiv", "mod")


def _moving(binding: Expr, extents: Mapping[str, Expr]) -> dict[Expr, int]:
    """The terms of a binding that move with the loops."""
    return {a: c for a, c in to_affine(binding).coeffs.items() if free_vars(a) & set(extents)}


def _is_mixed_radix(binding: Expr, extents: Mapping[str, Expr]) -> bool:
    """Whether different values of the loops give different values: `i * 8 + j` with `j < 8`."""
    span = 0
    terms = sorted(_moving(binding, extents).items(), key=lambda term: term[1])
    for n, (atom, c) in enumerate(terms):
        assert isinstance(atom, Var)
        if c <= span:
            return False
        extent = as_int(extents[atom.name])
        if extent is None:
            return n == len(terms) - 1
        span += c * (extent - 1)
    return True


def _repeated(func: Func, block: Block, step: str) -> Exception:
    message = f'block "{block.name}" may compute an element more than once there'
    help = "choose a loop of its own"
    return refuse(func, f"{step}.repeated", message, block, help=help)
