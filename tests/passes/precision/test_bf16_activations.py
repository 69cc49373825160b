from __future__ import annotations

import numpy as np

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import PassContext
from tilewright.passes.fuse import fuse
from tilewright.passes.precision.bf16_activations import bf16_activations
from tilewright.passes.precision.bf16_matmuls import bf16_matmuls
from tilewright.target.registry import CPUS

ALLOWED = PassContext(CPUS["sapphirerapids"], "bf16")


def _residual(middle: str, *, returned: bool = False, early: bool = False) -> Graph:
    """A product's activation that is read by another product, and added to it."""
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 64, 64), dtype=np.float32) / 8
    g = GraphBuilder("residual")
    x = g.input("x", tensor(F32, 64, 64))
    y = g.add(middle, g.add("matmul", x, g.constant(first)))
    reader = g.add("neg", y) if early else y
    z = g.add("add", g.add("matmul", y, g.constant(second)), reader)
    return g.graph(*((y, z) if returned else (z,)))


def _lowered(graph: Graph) -> Graph:
    return dce(bf16_matmuls(graph, ALLOWED), ALLOWED)


@for_each("early", [False, True], ids=["residual", "read-before-it-is-rounded"])
def test_an_activation_of_products_is_stored_once(early: bool) -> None:
    graph = _residual("relu", early=early)
    before = _lowered(graph)
    after = dce(bf16_activations(before, ALLOWED), ALLOWED)
    verify_graph(after)
    check_types(after)
    relu = next(n for n in after.nodes if n.op == "relu")
    (cast,) = after.consumers[relu.name]
    assert isinstance(cast.attrs, CastAttrs)
    assert cast.attrs.to == BF16
    kernels = [{m.op for m in n.regions[0].nodes} for n in fuse(after, ON_CPU).nodes]
    assert len(kernels) < len(fuse(before, ON_CPU).nodes), "no kernel only converts it"
    inputs = random_inputs(graph, {})
    expected = run_graph(graph, inputs, {})[graph.outputs[0]]
    found = run_graph(after, inputs, {})[after.outputs[0]]
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())


@for_each(
    "graph",
    [_residual("softmax"), _residual("relu", returned=True)],
    ids=["not of a product", "a result"],
)
def test_what_stays_in_f32(graph: Graph) -> None:
    before = _lowered(graph)
    assert bf16_activations(before, ALLOWED) is before


def test_only_if_it_is_allowed() -> None:
    before = _lowered(_residual("relu"))
    assert bf16_activations(before, PassContext(ALLOWED.target, "f32")) is before
