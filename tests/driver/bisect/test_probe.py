from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.probe import probe, values_in_memory
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.target.host import host

N = Var("N")


def joined() -> Graph:
    """Two values that lie side by side in a third one, and what is computed of it."""
    g = GraphBuilder("g")
    x, w = (
        g.input("x", TensorType(F32, (N, const(4)))),
        g.input("w", TensorType(F32, (const(4), const(4)))),
    )
    v = g.input("v", TensorType(F32, (const(8), const(3))))
    parts = g.add("matmul", x, w, name="a"), g.add("matmul", g.add("exp", x), w, name="b")
    both = g.add("concat", *parts, attrs=ConcatAttrs(1), name="both")
    return g.graph(g.add("matmul", both, v, name="y"))


def test_every_value_is_seen_those_inside_others_too() -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 4), "w": (4, 4), "v": (8, 3)}
    inputs = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    graph = optimized_graph(joined(), make_options())
    exposed = values_in_memory(graph)
    assert "y" not in exposed
    probed = probe(graph, exposed)
    found = probed.values(NativeRunner(host()).run(probed.graph, inputs), {"N": 3})
    assert {"a", "b", "both", "y"} <= found.keys()
    for name, array in found.items():
        wanted = run_graph(probe(graph, [name]).graph, inputs)[name]
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
