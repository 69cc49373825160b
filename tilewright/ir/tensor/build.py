"""Writing tensor expressions in Python: `compute` with index lambdas, and reductions.

b = Builder("matmul")
x, w = b.input("x", F32, (m, k)), b.input("w", F32, (k, n))
y = b.compute("y", (m, n), lambda i, j: b.sum((k,), lambda r: x[i, r] * w[r, j]))
program = b.program(y)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import Expr, Reduce, Var, as_expr
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import DType
from tilewright.ir.tensor.nodes import Program, Stage, Tensor

Body = Callable[..., Expr]


class Builder:
    """Collects stages; names are made unique, axes are called `i0, i1, ...` and `r0, r1, ...`,
    unless a size is called so: give all inputs first.

    While `scope` is set, a stage is called by it: the result (stage `y`) `scope`, any other
    `scope.name`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Tensor] = []
        self.stages: list[Stage] = []
        self.scope = ""
        self.sites = 0
        self._taken: set[str] = set()
        self._sizes: set[str] = set()

    def input(self, name: str, dtype: DType, shape: Sequence[Expr | int]) -> Tensor:
        """Declare an input."""
        found = Tensor(self._unique(name), dtype, tuple(as_expr(d) for d in shape))
        self._sizes.update(*map(free_vars, found.shape))
        self.inputs.append(found)
        return found

    def compute(self, name: str, shape: Sequence[Expr | int], body: Body) -> Tensor:
        """Define a tensor: `body` gets one index variable a dimension and returns the element."""
        dims = tuple(as_expr(d) for d in shape)
        self._sizes.update(*map(free_vars, dims))
        axes = tuple(self._axis(f"i{n}") for n in range(len(dims)))
        if self.scope:
            name = self.scope if name == "y" else f"{self.scope}.{name}"
        stage = Stage(self._unique(name), dims, axes, body(*(Var(a) for a in axes)))
        self.stages.append(stage)
        return stage.tensor

    def reduce(self, op: str, extents: Sequence[Expr | int], body: Body) -> Expr:
        """`op` (`sum prod max min any all`) over index ranges; the root of a stage's body only."""
        sizes = [as_expr(extent) for extent in extents]
        self._sizes.update(*map(free_vars, sizes))
        axes = tuple((Var(self._axis(f"r{n}")), size) for n, size in enumerate(sizes))
        return Reduce(op, axes, body(*(v for v, _ in axes)))

    def sum(self, extents: Sequence[Expr | int], body: Body) -> Expr:
        """`reduce("sum", ...)`, the common case."""
        return self.reduce("sum", extents, body)

    def check(self, index: Expr, low: Expr, size: Expr) -> Expr:
        """An index that is reported where it does not lie in low .. size - 1."""
        self.sites += 1
        return CheckedIndex(index, low, size, self.sites - 1)

    def program(self, *outputs: Tensor) -> Program:
        """Everything defined so far, as a program with these outputs."""
        return Program(
            self.name, tuple(self.inputs), tuple(self.stages), tuple(t.name for t in outputs)
        )

    def _axis(self, name: str) -> str:
        while name in self._sizes:
            name += "_"
        return name

    def _unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._taken.add(candidate)
        return candidate
