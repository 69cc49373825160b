"""Whether a schedule step keeps every data dependence: exact, by isl, over symbolic sizes.

    check(before, after)    LegalityError naming the two instances whose order was reversed

An *instance* is a block with values of its iterators; steps move instances in time, they do not
change what one does. Two instances depend on each other if both touch an element and one writes it.
A reduction's steps may run in any order among themselves. Sizes are taken to be at least 1; where
isl cannot express an index (`fuse` of symbolic loops), a few concrete sizes are checked instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.arith.expr import Expr, const
from tilewright.arith.isl import NotAffineError, ParamSpace, Relation
from tilewright.arith.walk import free_vars, substitute
from tilewright.core.errors import LegalityError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import CONCURRENT_KINDS, Func
from tilewright.ir.loop.walk import map_buffer, substitute_stmt
from tilewright.schedule.diagnostics import Mark
from tilewright.schedule.legality.instances import Instances, Place, places

# Sizes tried where symbolic ones cannot be handled: odd, so that tiles do not fit.
CONCRETE = (3, 7)


@node
class Dependence:
    """Pairs of instances, the first of which runs before the second and shares an element."""

    source: str
    target: str
    buffer: str
    is_flow: bool
    pairs: Relation


def check(before: Func, after: Func) -> None:
    """Raise a `LegalityError` if `after` violates a dependence of `before`."""
    sizes = sorted(_sizes(before) | _sizes(after))
    try:
        _Check(before, after, after, ParamSpace(sizes)).run()
    except NotAffineError:
        for start in CONCRETE:
            values: dict[str, Expr] = {s: const(start + n) for n, s in enumerate(sizes)}
            fixed = _fixed(before, values), _fixed(after, values)
            _Check(*fixed, after, ParamSpace(())).run()


def dependences(instances: Instances) -> Iterator[Dependence]:
    """All dependences of a function, the order of a reduction's own steps excepted."""
    touched = instances.accesses()
    for buffer, accesses in touched.items():
        for a, first in accesses:
            for b, second in accesses:
                free = a is b and first.carried and second.carried
                if free or not (first.writes or second.writes) or instances.never_before(a, b):
                    continue
                pairs = instances.dependent(a, first, b, second)
                if not pairs.is_empty():
                    flow = first.writes and not second.writes
                    yield Dependence(a.block.name, b.block.name, buffer, flow, pairs)


class _Check:
    """The dependences of one function against the order of another; `shown` is for messages."""

    def __init__(self, before: Func, after: Func, shown: Func, space: ParamSpace) -> None:
        old, new = places(before), places(after)
        self.shown = shown
        self.space = space
        width = max((len(p.positions) for p in (*old.values(), *new.values())), default=0)
        self.before = Instances(old, space, width)
        self.after = Instances(new, space, width)
        self.outputs = set(after.outputs)

    def run(self) -> None:
        """Check every dependence, and that all of every output is still written."""
        for dep in dependences(self.before):
            if dep.source in self.after.places and dep.target in self.after.places:
                self._check(dep)
        for name, place in self.before.places.items():
            writes_output = any(r.buffer in self.outputs for r in place.block.writes)
            if writes_output and name in self.after.places:
                self._check_complete(name)

    def _check(self, dep: Dependence) -> None:
        a, b = self.after.places[dep.source], self.after.places[dep.target]
        first, all_a, all_b = self.after.first_time(a), self.after.time(a), self.after.time(b)
        if dep.is_flow:
            self._refuse_any(dep, dep.pairs.from_missing(all_a).to_present(all_b))
            self._refuse_any(dep, dep.pairs & first.not_before(all_b))
        else:
            # What runs repeatedly writes the same again: its first run is what counts.
            self._refuse_any(dep, dep.pairs & first.not_before(self.after.first_time(b)))
        for depth, loop in enumerate(self.after.shared_loops(a, b)):
            if loop.kind in CONCURRENT_KINDS:
                together = all_a.prefix(2 * depth + 1).meets(all_b.prefix(2 * depth + 1))
                same = all_a.prefix(2 * depth + 2).meets(all_b.prefix(2 * depth + 2))
                self._refuse_any(dep, dep.pairs & (together - same), loop.name)

    def _refuse_any(self, dep: Dependence, violated: Relation, loop: str = "") -> None:
        if violated.is_empty():
            return
        sizes, first, second = violated.sample()
        a, b = self.before.places[dep.source], self.before.places[dep.target]
        why = f", both iterations of {loop} that run at once" if loop else ""
        message = f"{_instance(a, first)} must run before {_instance(b, second)}{why}"
        raise LegalityError(
            "legality.dependence",
            message,
            loc=self.shown.loc,
            notes=(*self._sizes_note(sizes), self._mark(dep.target)),
            help=f"the first {'writes' if dep.is_flow else 'touches'} what the second "
            f"{'reads' if dep.is_flow else 'writes'} in {dep.buffer!r}",
        )

    def _check_complete(self, name: str) -> None:
        old = self.before.time(self.before.places[name])
        lost = old.from_missing(self.after.time(self.after.places[name]))
        if not lost.is_empty():
            sizes, first, _ = lost.sample()
            message = f"{_instance(self.before.places[name], first)} does not run any more"
            notes = (*self._sizes_note(sizes), self._mark(name))
            raise LegalityError("legality.lost", message, loc=self.shown.loc, notes=notes)

    def _sizes_note(self, sizes: list[int]) -> tuple[str, ...]:
        pairs = zip(self.space.sizes, sizes, strict=True)
        return (f"for {', '.join(f'{name} = {n}' for name, n in pairs)}",) if sizes else ()

    def _mark(self, block: str) -> Mark:
        return Mark(self.shown, places(self.shown)[block].block, f'"{block}"')


def _instance(place: Place, values: list[int]) -> str:
    names = (it.name for it in place.block.iters)
    pairs = ", ".join(f"{name} = {n}" for name, n in zip(names, values, strict=True))
    return f'block "{place.block.name}" at ({pairs})'


def _sizes(func: Func) -> set[str]:
    """The symbolic sizes of a function."""
    found = {name for b in func.params for dim in b.shape for name in free_vars(dim)}
    for p in places(func).values():
        exprs = [*(f.extent for f in p.loops), *(it.extent for it in p.block.iters)]
        loops = {f.name for f in p.loops}
        found |= {name for e in exprs for name in free_vars(e) if name not in loops}
    return found


def _fixed(func: Func, values: dict[str, Expr]) -> Func:
    """`func` with numbers for its sizes."""

    def number(e: Expr) -> Expr:
        return substitute(e, values)

    params = tuple(map_buffer(b, number) for b in func.params)
    return replace(func, params=params, body=substitute_stmt(func.body, values))
