"""Tensor expressions: a program is a list of stages, each defining a tensor element by element.

    tensor @softmax(x: f32[M, N]) -> y {
      m: f32[M] = [i] max(k in N) x[i, k]
      e: f32[M, N] = [i, j] exp(x[i, j] - m[i])
      s: f32[M] = [i] sum(k in N) e[i, k]
      y: f32[M, N] = [i, j] e[i, j] / s[i]
    }

A reduction stands only at the root of a stage's body.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Load, Reduce, Var, as_expr
from tilewright.arith.operators import Number
from tilewright.core.dtypes import DType
from tilewright.core.node import node
from tilewright.ir.types import Shape


@node
class Tensor:
    """A named tensor; indexing it builds a load."""

    name: str
    dtype: DType
    shape: Shape

    def __getitem__(self, indices: Expr | Number | tuple[Expr | Number, ...]) -> Load:
        return self.at(*(indices if isinstance(indices, tuple) else (indices,)))

    def at(self, *indices: Expr | Number, when: Expr | None = None) -> Load:
        """The element at `indices`; zero, and no access, where `when` is false."""
        assert len(indices) == len(self.shape), f"{self.name} has rank {len(self.shape)}"
        return Load(self.name, tuple(as_expr(i) for i in indices), self.dtype, when)


@node
class Stage:
    """`name[axes] = body` for all values of the axes, which range over the shape."""

    name: str
    shape: Shape
    axes: tuple[str, ...]
    body: Expr

    @property
    def dtype(self) -> DType:
        """The element type of what it defines."""
        return self.body.dtype

    @property
    def tensor(self) -> Tensor:
        """What it defines."""
        return Tensor(self.name, self.dtype, self.shape)

    @property
    def is_reduction(self) -> bool:
        """Whether it reduces over axes of its own."""
        return isinstance(self.body, Reduce)

    @property
    def indices(self) -> tuple[Var, ...]:
        """The axes as variables."""
        return tuple(Var(a) for a in self.axes)


@node
class Program:
    """Stages in order; each reads inputs and earlier stages."""

    name: str
    inputs: tuple[Tensor, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
