"""Random small graphs over arithmetic, layouts and products, with inputs to run them on."""

from __future__ import annotations

import random

import numpy as np

from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32, F64, from_numpy
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types

SEEDS = range(12)
N = 3  # what the symbolic size is when graphs are run

UNARY = ("neg", "abs", "relu", "tanh", "sigmoid", "identity")
BINARY = ("add", "sub", "mul", "max", "min")


class RandomGraph:
    """Grows a graph in which every value is a matrix of one of a few shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.g = GraphBuilder(f"random{seed}")
        self.values = [
            self.g.input("x", tensor(F32, Var("N"), 4)),
            self.g.input("in/y", tensor(F32, 4, 4)),
            self.constant(4, 4),
            self.constant(1, 4),
            self.constant(1, 1),
        ]

    def constant(self, *shape: int) -> str:
        return self.g.constant(self.data.standard_normal(shape).astype(np.float32))

    def graph(self, size: int = 25) -> Graph:
        steps = (self.unary, self.binary, self.product, self.layout, self.convert)
        for _ in range(size):
            self.values.append(self.rng.choice(steps)())
        outputs = self.rng.sample(self.values, 4)
        return self.g.graph(*outputs, outputs[0])

    def pick(self) -> str:
        return self.rng.choice(self.values)

    def shape(self, name: str) -> tuple[Expr, ...]:
        return self.g.type(name).shape

    def unary(self) -> str:
        return self.g.add(self.rng.choice(UNARY), self.pick())

    def binary(self) -> str:
        a = self.pick()
        fitting = [b for b in self.values if self.fits(self.shape(a), self.shape(b))]
        return self.g.add(self.rng.choice(BINARY), a, self.rng.choice(fitting))

    def fits(self, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
        return all(p is q or const(1) in (p, q) for p, q in zip(a, b, strict=True))

    def product(self) -> str:
        a = self.pick()
        fitting = [b for b in self.values if self.shape(b)[0] is self.shape(a)[1]]
        if not fitting:
            return self.unary()
        b, op = self.rng.choice(fitting), self.rng.choice(("matmul", "einsum"))
        attrs = make_attrs(op, {"equation": "ij,jk->ik"} if op == "einsum" else {})
        return self.g.add(op, a, b, attrs=attrs)

    def layout(self) -> str:
        x = self.pick()
        rows, columns = self.shape(x)
        zero = const(0)
        op, values = self.rng.choice(
            (
                ("transpose", {"perm": (1, 0)}),
                ("transpose", {"perm": (0, 1)}),
                ("reshape", {"shape": (columns, rows)}),
                ("reshape", {"shape": (rows, columns)}),
                ("expand", {"shape": (rows, columns)}),
                ("slice", {"starts": (zero, zero), "stops": (rows, columns), "steps": (1, 1)}),
                ("slice", {"starts": (zero, columns - 1), "stops": (rows, -1), "steps": (1, -1)}),
                ("pad", {"before": (0, 0), "after": (0, 0)}),
            )
        )
        return self.g.add(op, x, attrs=make_attrs(op, values))

    def convert(self) -> str:
        x = self.pick()
        to = self.rng.choice((F32, F64))
        wide = self.g.add("cast", x, attrs=make_attrs("cast", {"to": to}))
        return self.g.add("cast", wide, attrs=make_attrs("cast", {"to": F32}))


def random_graph(seed: int) -> Graph:
    """A graph of some 25 nodes, several of them unused, equal or without effect."""
    return RandomGraph(seed).graph()


def sample_inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays for the inputs of a graph, with a few special values among them."""
    data = np.random.default_rng(seed)
    found = {}
    for v in graph.inputs:
        assert isinstance(v.type, TensorType)
        shape = [d.value if d is not Var("N") else N for d in v.type.shape]  # type: ignore[attr-defined]
        x = data.standard_normal(shape).astype(v.type.dtype.numpy)
        x.reshape(-1)[:2] = (0.0, -0.0)
        found[v.name] = x
        assert from_numpy(x.dtype) == v.type.dtype
    return found


def assert_same_results(before: Graph, after: Graph, rtol: float = 0.0) -> None:
    """The new graph verifies, and gives the same outputs, in order; bit for bit by default."""
    verify_graph(after)
    check_types(after)
    inputs = sample_inputs(before)
    old, new = run_graph(before, inputs), run_graph(after, inputs)
    for a, b in zip(before.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(new[b], old[a], rtol=rtol, atol=rtol)
        assert old[a].dtype == new[b].dtype
