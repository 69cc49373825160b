"""Random graphs of nested loops and branches, over vectors of one symbolic size."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder

N, T = Var("N"), Var("T")
VECTOR = tensor(F32, N)


@dataclass
class RandomControl:
    """Adds random nodes; loops carry, read and collect whatever values there are."""

    rng: np.random.Generator
    loops: list[str] = field(default_factory=list)

    def graph(self, nodes: int, depth: int) -> Graph:
        """A graph of inputs x, y: f32[N] and t: f32[T]."""
        g = GraphBuilder("f")
        values = [g.input("x", VECTOR), g.input("y", VECTOR)]
        g.input("t", tensor(F32, T))
        self._grow(g, values, nodes, depth, None)
        return g.graph(*dict.fromkeys(values[-4:]))

    def _pick(self, values: list[str]) -> str:
        return values[int(self.rng.integers(len(values)))]

    def _grow(
        self, g: GraphBuilder, values: list[str], nodes: int, depth: int, counter: Expr | None
    ) -> None:
        for _ in range(nodes):
            kind = int(self.rng.integers(8 if depth else 5))
            a, b = self._pick(values), self._pick(values)
            if kind < 2:
                values.append(g.add(("add", "sub")[kind], a, b))
            elif kind == 2:
                values.append(g.add("tanh", a))
            elif kind == 3:
                values.append(g.add("softmax", a, attrs=make_attrs("softmax", {"axis": 0})))
            elif kind == 4:
                values.append(g.add("reverse", a, attrs=make_attrs("reverse", {"axes": (0,)})))
            elif kind == 5:
                values.append(self._branch(g, values, depth, counter))
            else:
                values += self._loop(g, values, depth, counter)

    def _loop(
        self, g: GraphBuilder, values: list[str], depth: int, outer: Expr | None
    ) -> list[str]:
        name = f"i{len(self.loops)}"
        self.loops.append(name)
        carried, rows = int(self.rng.integers(4)), int(self.rng.integers(1, 3))
        given = [self._pick(values) for _ in range(carried + 3)]
        body = GraphBuilder(name)
        inner = [body.input(f"v{k}", VECTOR) for k in range(len(given))]
        self._grow(body, inner, int(self.rng.integers(1, 6)), depth - 1, Var(name))
        results = [self._pick(inner) for _ in range(carried + rows)]
        counts = [T, T + 1, const(int(self.rng.integers(4))), (outer or T) + 1]
        count = counts[int(self.rng.integers(len(counts)))]
        backward = tuple(k for k in range(rows) if self.rng.integers(2))
        attrs = LoopAttrs(name, count, carried, backward=backward)
        found = g.add_control("loop", ["", *given], [body.graph(*results)], attrs)
        total = make_attrs("reduce_sum", {"axes": (0,), "keepdims": False})
        return [*found[:carried], *(g.add("reduce_sum", y, attrs=total) for y in found[carried:])]

    def _branch(self, g: GraphBuilder, values: list[str], depth: int, counter: Expr | None) -> str:
        given = [self._pick(values) for _ in range(3)]
        peak = make_attrs("reduce_max", {"axes": (0,), "keepdims": False})
        condition = g.add(
            "less", g.add("reduce_max", given[0], attrs=peak), g.constant(np.float32(0.3))
        )
        regions = []
        for word in ("then", "else"):
            branch = GraphBuilder(word)
            inner = [branch.input(f"v{k}", VECTOR) for k in range(len(given))]
            self._grow(branch, inner, int(self.rng.integers(1, 4)), depth - 1, counter)
            regions.append(branch.graph(inner[-1]))
        return g.add_control("if", [condition, *given], regions, IfAttrs())[0]
