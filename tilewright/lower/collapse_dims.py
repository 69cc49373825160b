"""Collapse adjacent dimensions that every access treats as one.

    y: f32[1, 128, 768] = [a, b, c] relu(x[a, b, c])      →   y: f32[98304] = [i0] relu(x[i0])
    y: f32[N, H, W, C] = sum(k...) p[n, y+kh, x+kw, k] * w[k, c]
                                   →   y: f32[N * H * W, C] with n, y, x computed from one index

Tensors are row-major, so adjacent dimensions are one dimension of their product. Fewer, longer
loops tile better and vectorize without tails. Dimensions of size 1 are dropped first. Two axes of a
stage are collapsed if every tensor is read by both as adjacent indices, or by neither. A reduction
may in addition read *one* tensor through indices computed from the collapsed axis, as an implicit
GEMM reads the input of a convolution, and so may the stage that packs the operand of a GEMM.

A tensor may be a strided view: it is then laid out by the shape of its parent, and dimensions with
a gap between their rows are not collapsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tilewright.arith.expr import Binary, Cast, Expr, Load, Reduce, Var, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, rewrite, substitute
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


class _Joiner:
    """Finds, to a fixed point, the pairs of neighbouring dimensions that can be joined.

    `tensor_cuts[name]` and `stage_cuts[name]` hold the positions d where dimensions d and d + 1
    must stay apart.
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
        changed = True
        while changed:
            changed = False
            for s in program.stages:
                changed |= self._separate(s)

    def _separate(self, s: Stage) -> bool:
        """Find cuts forced by one stage; whether there were new ones."""
        before = sum(map(len, self.cuts.values()))
        computed = self._computed_reads(s)
        for d in range(len(s.axes) - 1):
            pair = s.axes[d], s.axes[d + 1]
            for read in self.body[s.name]:
                if not self._side_by_side(s, read, d) and not self._may_compute(
                    s, pair, read, computed
                ):
                    self.cuts[s.name].add(d)
        for read in self.body[s.name]:
            self._separate_tensor(s, read)
        return sum(map(len, self.cuts.values())) > before

    def _side_by_side(self, s: Stage, read: Load, d: int) -> bool:
        """Whether `read` uses axes d and d + 1 as two neighbouring indices, or neither at all."""
        first, second = Var(s.axes[d]), Var(s.axes[d + 1])
        used = [first.name in free_vars(read), second.name in free_vars(read)]
        if not any(used):
            return True
        if first not in read.indices or second not in read.indices:
            return False
        p = read.indices.index(first)
        if read.indices[p + 1 : p + 2] != (second,):
            return False
        others = [i for q, i in enumerate(read.indices) if q not in (p, p + 1)]
        if read.mask is not None:
            others.append(read.mask)
        clean = not any({first.name, second.name} & free_vars(i) for i in others)
        same = self.shapes[read.buffer][p + 1] is s.shape[d + 1]
        return clean and same and p not in self.cuts[read.buffer]

    def _computed_reads(self, s: Stage) -> list[Load]:
        """The reads of a reduction, or of what one packs, by indices that are not plain axes."""
        if not s.is_reduction and s.name not in self.packed:
            return []
        summed = (v for v, _ in s.body.axes) if isinstance(s.body, Reduce) else ()
        axes = {*s.indices, *summed}
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
        for p in range(len(read.indices) - 1):
            first, second = read.indices[p], read.indices[p + 1]
            joined = (
                isinstance(first, Var)
                and isinstance(second, Var)
                and first.name in s.axes
                and s.axes.index(first.name) + 1 < len(s.axes)
                and s.axes[s.axes.index(first.name) + 1] == second.name
                and s.axes.index(first.name) not in self.cuts[s.name]
                and self.shapes[read.buffer][p + 1] is s.shape[s.axes.index(second.name)]
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
        rank, start = len(self.shapes[name]), 0
        for d in range(rank):
            if d == rank - 1 or d in self.cuts[name]:
                yield range(start, d + 1)
                start = d + 1

    def _shape(self, name: str) -> Shape:
        shape = self.shapes[name]
        return tuple(simplify(product(tuple(shape[d] for d in run))) for run in self._runs(name))

    def _stage(self, s: Stage) -> Stage:
        axes, values = [], {}
        for run in self._runs(s.name):
            axis = _joined_name(s, run)
            axes.append(axis)
            values.update(_apart(Var(axis), [(s.axes[d], s.shape[d]) for d in run]))
        shape = self._shape(s.name)
        extents = dict(zip(axes, shape, strict=True))
        if isinstance(s.body, Reduce):
            extents.update((v.name, n) for v, n in s.body.axes)

        def load(e: Expr) -> Expr | None:
            if not isinstance(e, Load):
                return None
            indices = tuple(self._index(s, e, run, values, extents) for run in self._runs(e.buffer))
            mask = None if e.mask is None else simplify(substitute(e.mask, values), extents)
            return Load(e.buffer, indices, e.dtype, mask)

        # A joined axis has a name of its own, so the second rewrite keeps what the first made.
        body = _rewrite_body(s.body, lambda e: substitute(rewrite(e, load), values))
        return Stage(s.name, shape, tuple(axes), body)

    def _index(
        self, s: Stage, e: Load, run: Run, values: dict[str, Expr], extents: dict[str, Expr]
    ) -> Expr:
        first = e.indices[run[0]]
        if len(run) == 1:
            return simplify(substitute(first, values), extents)
        assert isinstance(first, Var)
        start = s.axes.index(first.name)
        return simplify(self._part(s, range(start, start + len(run))), extents)

    def _part(self, s: Stage, part: Run) -> Expr:
        """The number that neighbouring axes make, within the joined axis that holds them."""
        whole = self._run_of(s, s.axes[part[0]])
        joined: Expr = Var(_joined_name(s, whole))
        after = product(tuple(s.shape[d] for d in whole if d > part[-1]))
        number = joined // after if part[-1] != whole[-1] else joined
        if part[0] == whole[0]:
            return number
        return number % product(tuple(s.shape[d] for d in part))

    def _run_of(self, s: Stage, axis: str) -> Run:
        position = s.axes.index(axis)
        return next(run for run in self._runs(s.name) if position in run)


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


def _joined_name(s: Stage, run: Run) -> str:
    return "_".join(s.axes[d] for d in run)


def _apart(joined: Var, axes: Sequence[tuple[str, Expr]]) -> dict[str, Expr]:
    """The original axes in terms of the joined one."""
    values: dict[str, Expr] = {}
    rest: Expr = joined
    for name, extent in reversed(axes[1:]):
        values[name] = rest % extent
        rest = rest // extent
    values[axes[0][0]] = rest
    return values
