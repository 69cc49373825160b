"""Collapse adjacent dimensions that every access treats as one.

    y: f32[1, 128, 768] = [a, b, c] relu(x[a, b, c])      →   y: f32[98304] = [i0] relu(x[i0])
    y: f32[N, H, W, C] = sum(k...) p[n, y+kh, x+kw, k] * w[k, c]
                                   →   y: f32[N * H * W, C] with n, y, x computed from one index
    y: f32[M, 9, 2] = [a, b, c] select(b < 4, p[a, b, c], q[a, b - 4, c])
                                   →   y: f32[M, 18] = [a, b] select(b < 8, p[a, b], q[a, b - 8])

Tensors are row-major, so adjacent dimensions are one dimension of their product. Fewer, longer
loops tile better and vectorize without tails. Dimensions of size 1 are dropped first. Two axes of a
stage, or two axes that it reduces over, are collapsed if every tensor is read by both as adjacent
indices, or by neither; the outer one may be shifted, as in the parts of a concatenation. A
reduction may in addition read *one* tensor through indices computed from its own collapsed axis, as
an implicit GEMM reads the input of a convolution, and so may the stage that packs the operand of a
GEMM.

A tensor may be a strided view: it is then laid out by the shape of its parent, and dimensions with
a gap between their rows are not collapsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import (
    Binary,
    Cast,
    Expr,
    Load,
    Reduce,
    Select,
    Var,
    as_int,
    const,
    product,
)
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, rewrite, subexpressions, substitute
from tilewright.ir.tensor.nodes import Program, Stage, Tensor
from tilewright.ir.types import Shape
from tilewright.ops.tensor.subviews import parent_without_units

ONE = const(1)
Run = range
ParentShapes = Mapping[str, Shape]
"""The shapes by which strided views are laid out, by name."""


def collapse(program: Program) -> Program:
    """`program` over tensors of fewer dimensions; the bytes of every tensor are the same."""
    return collapse_strided(program, {})[0]


def collapse_strided(program: Program, parents: ParentShapes) -> tuple[Program, ParentShapes]:
    """`collapse` where tensors are strided views; also their parent shapes, collapsed."""
    shapes = {t.name: t.shape for t in (*program.inputs, *(s.tensor for s in program.stages))}
    long = {name: parent_without_units(shapes[name], parent) for name, parent in parents.items()}
    joiner = _Joiner(_drop_units(program), long)
    return joiner.result(), joiner.result_parent_shapes()


def _drop_units(program: Program) -> Program:
    """Remove dimensions of size 1 from tensors and axes of size 1 from stages."""
    kept = {
        t.name: [d for d, size in enumerate(t.shape) if size is not ONE]
        for t in (*program.inputs, *(s.tensor for s in program.stages))
    }

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        return Load(e.buffer, tuple(e.indices[d] for d in kept[e.buffer]), e.dtype, e.mask)

    def stage(s: Stage) -> Stage:
        units = {a: const(0) for a, n in zip(s.axes, s.shape, strict=True) if n is ONE}
        body = s.body
        if isinstance(body, Reduce):
            units.update((v.name, const(0)) for v, n in body.axes if n is ONE)
            body = Reduce(body.op, tuple(x for x in body.axes if x[1] is not ONE), body.body)
        body = _rewrite_body(body, lambda e: rewrite(substitute(e, units), load))
        return Stage(
            s.name,
            tuple(s.shape[d] for d in kept[s.name]),
            tuple(s.axes[d] for d in kept[s.name]),
            body,
        )

    inputs = tuple(
        Tensor(t.name, t.dtype, tuple(t.shape[d] for d in kept[t.name])) for t in program.inputs
    )
    return Program(program.name, inputs, tuple(map(stage, program.stages)), program.outputs)


def _rewrite_body(body: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rewrite what is under a reduction; one whose axes are all gone is its body."""
    if not isinstance(body, Reduce):
        return f(body)
    return Reduce(body.op, body.axes, f(body.body)) if body.axes else f(body.body)


@dataclass(frozen=True)
class _AxisGroup:
    """Neighbouring axes of a stage: those that number its elements, or those it reduces over.

    `cuts` has the positions d where axes d and d + 1 must stay apart.
    """

    names: tuple[str, ...]
    extents: Shape
    cuts: set[int]

    def runs(self) -> Iterator[Run]:
        """The ranges of axes that are joined."""
        return _runs(len(self.names), self.cuts)

    def joined(self) -> dict[str, Expr]:
        """The axes after joining, with their extents."""
        return {
            self._name(run): simplify(product(tuple(self.extents[d] for d in run)))
            for run in self.runs()
        }

    def values(self) -> dict[str, Expr]:
        """Each axis in terms of the one that it was joined to."""
        found: dict[str, Expr] = {}
        for run in self.runs():
            found.update(
                _apart(Var(self._name(run)), [(self.names[d], self.extents[d]) for d in run])
            )
        return found

    def part(self, first: str, count: int) -> Expr:
        """The number that neighbouring axes make, within the joined axis that holds them."""
        start = self.names.index(first)
        last = start + count - 1
        whole = next(run for run in self.runs() if start in run)
        joined: Expr = Var(self._name(whole))
        after = product(tuple(self.extents[d] for d in whole if d > last))
        number = joined // after if last != whole[-1] else joined
        if start == whole[0]:
            return number
        return number % product(self.extents[start : last + 1])

    def _name(self, run: Run) -> str:
        return "_".join(self.names[d] for d in run)


def _runs(rank: int, cuts: set[int]) -> Iterator[Run]:
    start = 0
    for d in range(rank):
        if d == rank - 1 or d in cuts:
            yield range(start, d + 1)
            start = d + 1


class _Joiner:
    """Finds, to a fixed point, the pairs of neighbouring dimensions that can be joined.

    `cuts[name]` holds the positions d where dimensions d and d + 1 of a tensor must stay apart;
    the first axes of a stage are cut like the tensor that it defines.
    """

    def __init__(self, program: Program, parents: ParentShapes) -> None:
        self.program = program
        self.parents = parents
        self.shapes: dict[str, Shape] = {t.name: t.shape for t in program.inputs}
        self.shapes.update((s.name, s.shape) for s in program.stages)
        self.cuts: dict[str, set[int]] = {name: set() for name in self.shapes}
        for name, parent in parents.items():
            shape = self.shapes[name]
            self.cuts[name] |= {d - 1 for d in range(1, len(shape)) if shape[d] is not parent[d]}
        self.body = {s.name: list(loads(s.body)) for s in program.stages}
        self.packed = _packed(program)
        self.groups = {s.name: self._groups(s) for s in program.stages}
        changed = True
        while changed:
            changed = False
            for s in program.stages:
                changed |= self._separate(s)

    def _groups(self, s: Stage) -> tuple[_AxisGroup, _AxisGroup]:
        """The axes of a stage, and those that it reduces over."""
        own = _AxisGroup(s.axes, s.shape, self.cuts[s.name])
        if not isinstance(s.body, Reduce):
            return own, _AxisGroup((), (), set())
        names, extents = (v.name for v, _ in s.body.axes), (n for _, n in s.body.axes)
        summed = _AxisGroup(tuple(names), tuple(extents), set())
        # What a term computes from an axis itself would take a division in each step.
        used = _used_outside_loads(s.body.body)
        summed.cuts.update(d for d, pair in enumerate(pairwise(summed.names)) if used & {*pair})
        return own, summed

    def _separate(self, s: Stage) -> bool:
        """Find cuts forced by one stage; whether there were new ones."""
        before = self._count_cuts(s)
        own, summed = self.groups[s.name]
        computed = self._computed_reads(s)
        for read in self.body[s.name]:
            for d, pair in enumerate(pairwise(own.names)):
                if not self._side_by_side(own, read, d) and not self._may_compute(
                    s, pair, read, computed
                ):
                    own.cuts.add(d)
            for d in range(len(summed.names) - 1):
                if not self._side_by_side(summed, read, d):
                    summed.cuts.add(d)
            self._separate_tensor(s, read)
        return self._count_cuts(s) > before

    def _count_cuts(self, s: Stage) -> int:
        return sum(map(len, self.cuts.values())) + len(self.groups[s.name][1].cuts)

    def _side_by_side(self, group: _AxisGroup, read: Load, d: int) -> bool:
        """Whether `read` uses axes d and d + 1 as two neighbouring indices, or neither at all."""
        first, second = Var(group.names[d]), Var(group.names[d + 1])
        used = [first.name in free_vars(read), second.name in free_vars(read)]
        if not any(used):
            return True
        if second not in read.indices[1:]:
            return False
        p = read.indices.index(second) - 1
        if _shift(read.indices[p], first) is None:
            return False
        others = [i for q, i in enumerate(read.indices) if q not in (p, p + 1)]
        if read.mask is not None:
            others.append(_over_rows(read.mask, first, group.extents[d + 1]))
        clean = not any({first.name, second.name} & free_vars(i) for i in others)
        same = self.shapes[read.buffer][p + 1] is group.extents[d + 1]
        return clean and same and p not in self.cuts[read.buffer]

    def _computed_reads(self, s: Stage) -> list[Load]:
        """The reads of a reduction, or of what one packs, by indices that are not plain axes."""
        if not s.is_reduction and s.name not in self.packed:
            return []
        axes = {Var(name) for group in self.groups[s.name] for name in group.names}
        return [r for r in self.body[s.name] if any(i not in axes for i in r.indices)]

    def _may_compute(
        self, s: Stage, pair: tuple[str, str], read: Load, computed: Sequence[Load]
    ) -> bool:
        """Whether the joined axis may be taken apart for this read: only for the one computed read
        of a reduction or of what is packed for it, only by a number that is known, as each element
        would be divided, and never for the innermost axis, which is the one to vectorise."""
        if [read] != list(computed) or pair[1] == s.axes[-1]:
            return False
        if as_int(s.shape[s.axes.index(pair[1])]) is None:
            return False
        others = [r for r in self.body[s.name] if r is not read]
        return not any(set(pair) & free_vars(r) for r in others)

    def _separate_tensor(self, s: Stage, read: Load) -> None:
        """Dimensions of a tensor are not collapsed unless collapsed axes of the stage read them."""
        for p, (first, second) in enumerate(pairwise(read.indices)):
            joined = any(
                d not in group.cuts
                and second is Var(group.names[d + 1])
                and _shift(first, Var(group.names[d])) is not None
                and self.shapes[read.buffer][p + 1] is group.extents[d + 1]
                for group in self.groups[s.name]
                for d in range(len(group.names) - 1)
            )
            if not joined:
                self.cuts[read.buffer].add(p)

    def result(self) -> Program:
        """The program with every run of joined dimensions made one."""
        inputs = tuple(Tensor(t.name, t.dtype, self._shape(t.name)) for t in self.program.inputs)
        stages = tuple(self._stage(s) for s in self.program.stages)
        return Program(self.program.name, inputs, stages, self.program.outputs)

    def result_parent_shapes(self) -> ParentShapes:
        """The parent shapes over collapsed dimensions."""
        joined = {}
        for name, parent in self.parents.items():
            runs = self._runs(name)
            joined[name] = tuple(simplify(product(tuple(parent[d] for d in run))) for run in runs)
        return joined

    def _runs(self, name: str) -> Iterator[Run]:
        return _runs(len(self.shapes[name]), self.cuts[name])

    def _shape(self, name: str) -> Shape:
        shape = self.shapes[name]
        return tuple(simplify(product(tuple(shape[d] for d in run))) for run in self._runs(name))

    def _stage(self, s: Stage) -> Stage:
        own, summed = self.groups[s.name]
        values = {**own.values(), **summed.values()}
        extents = {**own.joined(), **summed.joined()}

        def load(e: Expr) -> Expr | None:
            if not isinstance(e, Load):
                return None
            indices = tuple(self._index(s, e, run, values, extents) for run in self._runs(e.buffer))
            mask = None if e.mask is None else simplify(substitute(e.mask, values), extents)
            return Load(e.buffer, indices, e.dtype, mask)

        def choice(e: Expr) -> Expr | None:
            if not isinstance(e, Select):
                return None
            return Select(simplify(e.cond, extents), e.a, e.b)

        # A joined axis has a name of its own, so the second rewrite keeps what the first made.
        body = s.body
        if isinstance(body, Reduce):
            joined = tuple((Var(name), extent) for name, extent in summed.joined().items())
            body = Reduce(body.op, joined, body.body)
        body = _rewrite_body(body, lambda e: rewrite(substitute(rewrite(e, load), values), choice))
        return Stage(s.name, tuple(own.joined().values()), tuple(own.joined()), body)

    def _index(
        self, s: Stage, e: Load, run: Run, values: dict[str, Expr], extents: dict[str, Expr]
    ) -> Expr:
        first = e.indices[run[0]]
        if len(run) == 1:
            return simplify(substitute(first, values), extents)
        group, axis, shift = next(
            (g, name, found)
            for g in self.groups[s.name]
            for name in g.names
            if (found := _shift(first, Var(name))) is not None
        )
        row = product(self.shapes[e.buffer][run[1] : run[-1] + 1])
        return simplify(group.part(axis, len(run)) + row * shift, extents)


def _used_outside_loads(e: Expr) -> frozenset[str]:
    """The variables that an expression uses by themselves, not in an index."""
    return free_vars(rewrite(e, lambda x: Var("", x.dtype) if isinstance(x, Load) else None))


def _packed(program: Program) -> set[str]:
    """The stages that only contractions read, and that are no outputs."""
    readers: dict[str, list[Stage]] = {}
    for s in program.stages:
        for read in loads(s.body):
            readers.setdefault(read.buffer, []).append(s)
    return {
        s.name
        for s in program.stages
        if s.name not in program.outputs
        and not s.is_reduction
        and all(_is_product(r) for r in readers.get(s.name, ()))
    }


def _is_product(s: Stage) -> bool:
    term = s.body.body if isinstance(s.body, Reduce) and s.body.op == "sum" else None
    term = term.a if isinstance(term, Cast) else term
    return isinstance(term, Binary) and term.op == "mul"


def _apart(joined: Var, axes: Sequence[tuple[str, Expr]]) -> dict[str, Expr]:
    """The original axes in terms of the joined one."""
    values: dict[str, Expr] = {}
    rest: Expr = joined
    for name, extent in reversed(axes[1:]):
        values[name] = rest % extent
        rest = rest // extent
    values[axes[0][0]] = rest
    return values


def _shift(index: Expr, axis: Var) -> int | None:
    """What is added to an axis, if that is what an index is."""
    form = to_affine(index)
    return form.constant if form.coeffs == {axis: 1} else None


def _over_rows(mask: Expr, row: Var, extent: Expr) -> Expr:
    """A condition on the joined axis of rows of an extent, if that takes no division."""
    joined = Var("joined")
    found = simplify(substitute(mask, {row.name: joined // extent}))
    divided = any(isinstance(e, Binary) and e.op == "floordiv" for e in subexpressions(found))
    return mask if divided else found
