"""Proofs that an index is nonnegative, given loop ranges and conditions.

    ProveWithin({"i": N // 8 + 1, "j": 8}, [i * 8 + j < N]).nonneg(N - 1 - i * 8 - j)

The loop ranges are tried first, then sums with conditions, then isl, which is exact for linear
problems. Proofs are sound, not complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from tilewright.arith.affine import Affine, factors, from_affine, number, single, to_affine
from tilewright.arith.bounds import upper
from tilewright.arith.expr import Binary, Expr, Unary, Var, const
from tilewright.arith.isl import NotAffineError, ParamSpace
from tilewright.arith.prove import Prover
from tilewright.arith.walk import free_vars, rewrite

# Conditions that are taken together in one proof.
MAX_TOGETHER = 2


class ProveWithin:
    """Proves expressions nonnegative where each loop variable is below its extent and facts hold.

    Other names are sizes of at least 0.
    """

    def __init__(self, extents: Mapping[str, Expr], facts: Sequence[Expr] = ()) -> None:
        self.extents = extents
        self._prover = Prover(extents)
        self.facts = (*facts, *self._implied())

    def nonneg(self, e: Expr) -> bool:
        """Whether `e >= 0` is certain."""
        return self._directly(e) or self._by_choice(e) or self._with_named_quotients(e)

    def _implied(self) -> Iterator[Expr]:
        """What follows from every loop running at least once: no factor of its extent is 0."""
        for extent in self.extents.values():
            form = to_affine(extent)
            if form.constant or len(form.coeffs) != 1:
                continue
            parts = factors(next(iter(form.coeffs)))
            if all(map(self._is_natural, parts)):
                for part in parts:
                    yield const(1) <= part
                    if isinstance(part, Binary) and part.op == "floordiv":
                        yield part.b <= part.a

    def _is_natural(self, e: Expr) -> bool:
        low = self._prover.numeric.of(e).lo
        return low is not None and low >= 0

    def _directly(self, e: Expr) -> bool:
        return self._by_loops(e) or self._by_isl(e)

    def _by_choice(self, e: Expr) -> bool:
        """Whether it holds for both values that a `min` or `max` in it can have, or for one."""
        form = to_affine(e)
        for atom, c in form.coeffs.items():
            if isinstance(atom, Binary) and atom.op in ("min", "max"):
                rest = form.plus(single(atom), -c)
                sides = (from_affine(rest.plus(to_affine(x), c)) for x in (atom.a, atom.b))
                both = (atom.op == "min") == (c > 0)
                return (all if both else any)(map(self.nonneg, sides))
        return False

    def _by_loops(self, e: Expr) -> bool:
        form = to_affine(e)
        return self._prover.nonneg(form) or any(map(self._by_facts, self._cleared(form)))

    @cached_property
    def _forms(self) -> tuple[Affine, ...]:
        """The facts as forms that are not negative, as far as they are such."""
        return tuple(form for fact in self.facts for form in _nonnegative(fact))

    def _by_facts(self, form: Affine) -> bool:
        """Whether the form is a sum of facts and a nonnegative form."""
        for count in range(1, MAX_TOGETHER + 1):
            for together in combinations(self._forms, count):
                rest = form - sum(together[1:], together[0])
                if self._prover.nonneg(rest):
                    return True
        return False

    def _cleared(self, form: Affine) -> Iterator[Affine]:
        """The form, and those multiplied by a divisor in it that are nonnegative where it is."""
        yield form
        for atom, c in form.coeffs.items():
            if abs(c) != 1 or not isinstance(atom, Binary) or atom.op != "floordiv":
                continue
            y, d, rest = to_affine(atom.a), to_affine(atom.b), form.plus(single(atom), -c)
            if self._prover.is_divisor(d):
                # `rest + y // d >= 0` is `rest * d + y >= 0`, its mirror likewise.
                yield rest * d + y if c > 0 else rest.shift(1) * d - y.shift(1)

    def _by_isl(self, e: Expr) -> bool:
        """Whether no point of the loops makes the form negative, by integer programming."""
        names = tuple(self.extents)
        known = list(self.facts)
        for name, extent in self.extents.items():
            known += [const(0) <= Var(name), Var(name) < extent]
        mentioned = free_vars(e).union(*map(free_vars, known))
        space = ParamSpace(sorted(mentioned - set(names)), least=0)
        try:
            wrong = space.relation(names, (), [e < const(0)])
        except NotAffineError:
            return False
        for condition in known:
            try:
                wrong = wrong & space.relation(names, (), [condition])
            except NotAffineError:
                continue  # a fact that isl cannot express is left out, which is sound
        return wrong.is_empty()

    def _with_named_quotients(self, e: Expr) -> bool:
        """Prove it for all values of quotients by sizes.

        A number of tiles is a size like others: `i % ((M + 5) // 6)` is `i % q`, which is linear in
        sizes. What is known of `i // q` is how many values it has.
        """
        renamed = self._renamed(e, self._size_quotient)
        if renamed is None:
            return False
        within, e = renamed
        parts = within._renamed(e, within._loop_quotient)
        return within._by_loops(e) or (parts is not None and parts[0]._directly(parts[1]))

    def _renamed(
        self, e: Expr, extent_of: Callable[[Binary], Expr | None]
    ) -> tuple[ProveWithin, Expr] | None:
        """The same problem with names for quotients that are below `extent_of`; 0 means a size."""
        names: dict[Expr, Expr] = {}
        extents: dict[str, Expr] = {}

        def name(part: Expr) -> Expr | None:
            if not isinstance(part, Binary) or part.op != "floordiv":
                return None
            if part not in names:
                extent = extent_of(part)
                if extent is None:
                    return None
                new = f"quotient.{len(self.extents)}.{len(names)}"
                names[part] = Var(new)
                extents.update({} if extent is const(0) else {new: extent})
            return names[part]

        for loop, extent in self.extents.items():
            extents[loop] = rewrite(extent, name)
        facts = [rewrite(fact, name) for fact in self.facts]
        e = rewrite(e, name)
        return (ProveWithin(extents, facts), e) if names else None

    def _size_quotient(self, part: Binary) -> Expr | None:
        is_size = not free_vars(part) & self.extents.keys() and self._is_natural(part)
        return const(0) if is_size else None

    def _loop_quotient(self, part: Binary) -> Expr | None:
        """How many values `y // d` has, if that is a number: where `y` is below `count * d`."""
        y, d = to_affine(part.a), to_affine(part.b)
        low, high = self._prover.numeric.of(part)
        if low is not None and low >= 0 and high is not None:
            return const(high + 1)
        if not self._prover.is_divisor(d) or not self._prover.nonneg(y):
            return None
        most = upper(part.a, self.extents)
        largest = number(0) if most is None else to_affine(most)
        for atom, c in d.coeffs.items():
            count = -(-largest.coeffs.get(atom, 0) // c)
            if count > 0 and self._prover.nonneg((d.scale(count) - y).shift(-1)):
                return const(count)
        return None


def _nonnegative(fact: Expr) -> Iterator[Affine]:
    """The forms of which a condition says that they are at least 0."""
    if isinstance(fact, Unary) and fact.op == "not" and isinstance(fact.a, Binary):
        a, b = fact.a.a, fact.a.b
        if fact.a.op in ("lt", "le"):
            yield _difference(a, b, 1 if fact.a.op == "le" else 0)
    elif isinstance(fact, Binary) and fact.op in ("lt", "le", "eq"):
        yield _difference(fact.b, fact.a, 1 if fact.op == "lt" else 0)
        if fact.op == "eq":
            yield _difference(fact.a, fact.b, 0)


def _difference(a: Expr, b: Expr, least: int) -> Affine:
    return to_affine(a) - to_affine(b) - number(least)
