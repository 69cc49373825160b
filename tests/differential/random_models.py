"""Random models over sequences `[B, T, D]`: residuals, views, products, rows, scans.

They are made to share memory in awkward ways: values are read again long after they were made,
under other shapes, in kernels that could overwrite them.
"""

from __future__ import annotations

import random

import numpy as np

from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder

UNARY = ("relu", "tanh", "neg", "sigmoid", "abs", "floor")
BINARY = ("add", "sub", "mul", "max", "min")
REDUCTIONS = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_l2")


class RandomModel:
    """Grows a graph in which every value is `[B, T, D]` with D one of a few sizes."""

    def __init__(self, seed: int, symbolic: bool) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.g = GraphBuilder(f"model{seed}")
        self.rows: Expr = Var("T") if symbolic else const(self.rng.choice((1, 5, 8)))
        width = self.rng.choice((3, 8, 12))
        self.values = [self.g.input(n, tensor(F32, 2, self.rows, width)) for n in ("x", "y")]

    def build(self, size: int) -> Graph:
        steps = (self.unary, self.residual, self.residual, self.product, self.rows_op)
        steps = (*steps, self.view, self.layout, self.reduction, self.scan, self.joined)
        for _ in range(size):
            self.values.append(self.rng.choice(steps)())
        outputs = self.rng.sample(self.values[2:], min(3, size))
        return self.g.graph(*outputs)

    def pick(self) -> str:
        """A value, mostly a recent one."""
        recent = self.values[-4:] if self.rng.random() < 0.6 else self.values
        return self.rng.choice(recent)

    def width(self, name: str) -> int:
        size = as_int(self.g.type(name).shape[2])
        assert size is not None
        return size

    def add(self, op: str, *inputs: str, **values: object) -> str:
        return self.g.add(op, *inputs, attrs=make_attrs(op, values) if values else None)

    def weight(self, *shape: int) -> str:
        scale = 1 / max(1, shape[0]) ** 0.5
        return self.g.constant((scale * self.data.standard_normal(shape)).astype(np.float32))

    def unary(self) -> str:
        return self.add(self.rng.choice(UNARY), self.pick())

    def residual(self) -> str:
        x = self.pick()
        same = [v for v in self.values if self.width(v) == self.width(x)]
        return self.add(self.rng.choice(BINARY), x, self.rng.choice(same))

    def product(self) -> str:
        x = self.pick()
        y = self.add("matmul", x, self.weight(self.width(x), self.rng.choice((3, 8, 12))))
        return self.add("add", y, self.weight(self.width(y)))

    def rows_op(self) -> str:
        x = self.pick()
        if self.rng.random() < 0.5:
            return self.add("softmax", x, axis=self.rng.choice((-1, 1)))
        return self.add("layer_norm", x, self.weight(self.width(x)), axis=-1)

    def view(self) -> str:
        """The same bytes under another shape, put back in order along another axis."""
        x = self.pick()
        d = self.width(x)
        flat = self.add("reshape", x, shape=(2, self.rows * d))
        back = self.add("reverse", flat, axes=(self.rng.choice((0, 1)),))
        return self.add("reshape", back, shape=(2, self.rows, d))

    def layout(self) -> str:
        x = self.pick()
        turned = self.add("transpose", x, perm=(0, 2, 1))
        done = self.add(self.rng.choice(UNARY), turned)
        return self.add("transpose", done, perm=(0, 2, 1))

    def reduction(self) -> str:
        x = self.pick()
        axes = self.rng.choice(((2,), (1,), (0, 1), (1, 2), (0,)))
        least = self.add(self.rng.choice(REDUCTIONS), x, axes=axes, keepdims=True)
        return self.add(self.rng.choice(BINARY), x, least)

    def scan(self) -> str:
        return self.add("cumsum", self.pick(), axis=self.rng.choice((1, 2)))

    def joined(self) -> str:
        """Two values side by side, cut back to the width of one."""
        x, y = self.pick(), self.pick()
        both = self.add("concat", x, y, axis=2)
        start = self.rng.randrange(self.width(y) + 1)
        stop = start + self.width(x)
        zero = const(0)
        return self.add(
            "slice",
            both,
            starts=(zero, zero, const(start)),
            stops=(const(2), self.rows, const(stop)),
            steps=(1, 1, 1),
        )


def random_model(seed: int, size: int = 12, symbolic: bool = False) -> Graph:
    """A random model; with `symbolic`, the length T is not known."""
    return RandomModel(seed, symbolic).build(size)
