from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tilewright.arith.expr import Var, const
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options
from tilewright.ir.loop.verify import verify_func
from tilewright.lower.lower_kernel import lower_group, lower_kernel


def test_a_group_becomes_one_function() -> None:
    graph = optimized_graph(KERNELS["dense"](Var("M"), 8, 16), make_options("aarch64"))
    (node,) = graph.nodes
    types = [graph.types[i] for i in node.inputs]
    lowered = lower_kernel(node, types, annotations=(("aligned", 16),))
    verify_func(lowered.func)
    assert lowered.func.annotations == (("aligned", 16),)
    assert len(lowered.param_bytes) == len(lowered.func.params)
    assert not lowered.parent_shapes
    assert lowered.text.startswith(f"func @{lowered.func.name}(")


def test_strided_views_keep_the_shape_of_their_parent() -> None:
    graph = optimized_graph(KERNELS["softmax"](4, 8, 1), make_options("aarch64"))
    (node,) = (n for n in graph.nodes if n.regions)
    lowered = lower_group(node.regions[0], ((0, (const(4), const(32))),))
    name = lowered.func.params[0].name
    assert lowered.parent_shapes == {name: (const(4), const(32))}
