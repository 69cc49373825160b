from __future__ import annotations

import numpy as np

from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import Loc
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.lower.index_checks import checked_nodes, without_checks
from tilewright.lower.lower_kernel import lower_kernel
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.indexing import GatherAttrs, GatherNdAttrs
from tilewright.passes.fuse import fuse


def _fused() -> Graph:
    g = GraphBuilder("embeddings")
    i = g.input("i", tensor(I64, 6))
    tables = [g.input(name, tensor(F32, rows, 4)) for name, rows in (("a", 10), ("b", 20))]
    rows = [
        g.add("gather", t, i, attrs=GatherAttrs(0), loc=Loc(node=f"look_up_{t}")) for t in tables
    ]
    total = g.add("add", *rows)
    pairs = g.constant(np.array([[0, 1], [5, 3]]))
    taken = g.add("gather_nd", total, pairs, attrs=GatherNdAttrs(), loc=Loc(node="pick"))
    return fuse(g.graph(taken), ON_CPU)


def test_each_check_has_the_node_that_made_it() -> None:
    graph = _fused()
    names = [
        node.loc.node
        for n in graph.nodes
        for node in checked_nodes(n, [graph.types[i] for i in n.inputs])
    ]
    assert sorted(names) == ["look_up_a", "look_up_b", "pick", "pick"]


def test_kernels_without_checks() -> None:
    graph = _fused()
    for n in graph.nodes:
        func = lower_kernel(n, [graph.types[i] for i in n.inputs]).func
        assert "check(" in print_func(func)
        assert "check(" not in print_func(without_checks(func))
