from __future__ import annotations

import numpy as np

from tests.driver.bisect.deep_model import deep_input, deep_model
from tilewright.driver.bisect.native_runner import NativeRunner, unscheduled
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.extract_node import extract_node
from tilewright.driver.options import make_options
from tilewright.target.host import host


def test_a_kernel_alone_gives_what_it_gives_in_the_model() -> None:
    native = NativeRunner(host())
    graph = optimized_graph(deep_model(2, "N"), make_options())
    reference = ReferenceValues(deep_input(), native.run_unscheduled)
    values, sizes = reference.values(graph), reference.sizes(graph)
    node = graph.nodes[1]
    arrays = [values[name] for name in node.inputs]
    types = [graph.types[name] for name in node.inputs]
    part, inputs = extract_node(node, arrays, types, sizes, frozenset(graph.constant_by_name))
    assert [c.name for c in part.constants] == ["w1", "b1"]
    assert inputs.keys() == {"tanh_0", "size.N"}
    for schedule in (None, unscheduled):
        (y,) = native.run(part, inputs, schedule=schedule)
        np.testing.assert_allclose(y, values[node.name], rtol=1e-4, atol=1e-6)
    assert native.compilations == 2
