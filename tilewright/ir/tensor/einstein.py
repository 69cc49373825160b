"""Tensor programs from Einstein-style text.

    einstein("C[i, j] += A[i, k] * B[k, j]", a, b)
    einstein("Y[n, o, y, x] += X[n, c, 2 * y + r, 2 * x + s] * W[o, c, r, s]", x, w)
    einstein("M[i] max= X[i, j]   E[i, j] = exp(X[i, j] - M[i])", x)

`=` defines elements; `+=` sums over the variables that are not on the left, and so do `prod=`,
`max=`, `min=`, `any=`, `all=` with their operation. The range of a variable is found from the
dimensions it indexes: the whole of one that it indexes alone, and for `2 * y + r` as many values
of `y` as stay inside for all `r`. The last tensor defined is the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import Expr, Load, Reduce, Var, as_expr, const
from tilewright.arith.operators import REDUCTIONS
from tilewright.arith.simplify import simplify
from tilewright.arith.text import ExprParser
from tilewright.arith.walk import free_vars, loads
from tilewright.core.dtypes import DType
from tilewright.core.errors import TypeCheckError
from tilewright.core.text import Cursor
from tilewright.ir.tensor.nodes import Program, Stage, Tensor


def einstein(
    text: str,
    *inputs: Tensor,
    name: str = "einstein",
    extents: Mapping[str, Expr | int] | None = None,
) -> Program:
    """The program that `text` spells over `inputs`; `extents` gives ranges that cannot be found."""
    parser = _Parser(text, inputs, {v: as_expr(n) for v, n in (extents or {}).items()})
    stages = parser.stages()
    return Program(name, inputs, stages, (stages[-1].name,))


class _Parser:
    def __init__(self, text: str, inputs: Sequence[Tensor], given: Mapping[str, Expr]) -> None:
        self.cursor = Cursor(text)
        self.given = given
        self.tensors = {t.name: t for t in inputs}
        self.dtypes: dict[str, DType] = {t.name: t.dtype for t in inputs}
        self.sizes = frozenset(v for t in inputs for dim in t.shape for v in free_vars(dim))
        self.exprs = ExprParser(self.cursor, self.dtypes)

    def stages(self) -> tuple[Stage, ...]:
        found: list[Stage] = []
        while self.cursor.now.kind != "end" or not found:
            found.append(self.stage())
            self.cursor.accept(";")
        return tuple(found)

    def stage(self) -> Stage:
        start = self.cursor.position
        name, axes = self.left()
        reduction = self.operator()
        body = self.exprs.parse()
        wanted = (*axes, *sorted(free_vars(body) - self.sizes - set(axes)))
        ranges = self.ranges(body, wanted)
        reduced = tuple((Var(v), ranges[v]) for v in wanted[len(axes) :])
        if reduced and not reduction:
            self.cursor.position = start
            names = ", ".join(v.name for v, _ in reduced)
            self.cursor.fail(f"{names} is not on the left: write += to sum over it")
        full = Reduce(reduction, reduced, body) if reduced else body
        stage = Stage(name, tuple(ranges[a] for a in axes), axes, full)
        self.tensors[name] = stage.tensor
        self.dtypes[name] = stage.dtype
        return stage

    def left(self) -> tuple[str, tuple[str, ...]]:
        name = self.cursor.take("name")
        if name in self.tensors:
            self.cursor.fail(f"{name!r} is defined already")
        self.cursor.expect("[")
        axes: list[str] = []
        while not self.cursor.accept("]"):
            axes.append(self.cursor.take("name"))
            if not self.cursor.peek("]"):
                self.cursor.expect(",")
        return name, tuple(axes)

    def operator(self) -> str:
        """The reduction that stands before `=`, empty for none."""
        if self.cursor.accept("+="):
            return "sum"
        reduction = self.cursor.now.text if self.cursor.now.text in REDUCTIONS else ""
        self.cursor.position += bool(reduction)
        self.cursor.expect("=")
        return reduction

    def ranges(self, body: Expr, wanted: tuple[str, ...]) -> dict[str, Expr]:
        """The extent of each variable, from all indices that mention it."""
        ranges = {v: n for v, n in self.given.items() if v in wanted}
        indexed = [pair for load in loads(body) for pair in self.dimensions(load)]
        # What a variable indexes alone comes first: it needs no other range.
        indexed.sort(key=lambda pair: not isinstance(pair[0], Var))
        growing = True
        while growing:
            before = len(ranges)
            for index, dim in indexed:
                _infer(index, dim, wanted, ranges)
            growing = len(ranges) > before
        missing = [v for v in wanted if v not in ranges]
        if missing:
            raise TypeCheckError(
                "einstein.range",
                f"no range can be found for {', '.join(missing)}",
                help="give it with extents={...}",
            )
        return ranges

    def dimensions(self, load: Load) -> list[tuple[Expr, Expr]]:
        shape = self.tensors[load.buffer].shape
        if len(load.indices) != len(shape):
            raise TypeCheckError(
                "einstein.rank",
                f"{load.buffer!r} has {len(shape)} dimensions, {load} has {len(load.indices)}",
            )
        return list(zip(load.indices, shape, strict=True))


def _infer(index: Expr, dim: Expr, wanted: tuple[str, ...], ranges: dict[str, Expr]) -> None:
    """Add the range of the one variable of `index` whose range is not known yet."""
    form = to_affine(index)
    terms = {v.name: c for v, c in form.coeffs.items() if isinstance(v, Var) and v.name in wanted}
    unknown = [v for v in terms if v not in ranges]
    if isinstance(index, Var) and index.name in ranges:
        _check_same(index.name, ranges[index.name], dim)
    if len(unknown) != 1 or len(terms) != len(form.coeffs) or min(terms.values()) < 0:
        return
    # The greatest index is the last one: form.constant + sum of c * (extent - 1) <= dim - 1.
    room = dim - 1 - form.constant
    for v, c in terms.items():
        if v not in unknown:
            room = room - (ranges[v] - 1) * c
    step = const(terms[unknown[0]])
    ranges[unknown[0]] = dim if isinstance(index, Var) else simplify(room // step + 1)


def _check_same(variable: str, known: Expr, dim: Expr) -> None:
    if known is not dim:
        raise TypeCheckError("einstein.mismatch", f"{variable} ranges over {known} and over {dim}")
