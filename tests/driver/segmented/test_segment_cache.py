from __future__ import annotations

import numpy as np

from tests.driver.bisect.deep_model import deep_input, deep_model
from tilewright.driver.compile import compile_container
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.segmented.segment_cache import SegmentCache
from tilewright.driver.sources import import_graph
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.container import Container


def test_what_is_saved_is_not_compiled_again() -> None:
    made = []

    def compiled(graph: Graph, options: CompileOptions) -> Container:
        made.append(graph)
        return compile_container(graph, options)

    graph, options = import_graph(deep_model(1, "N")), make_options(cache=False, threads=1)
    library = SegmentCache(options, compiled)
    with library(graph) as first:
        wanted = first.run(deep_input())["y"]
        saved = {library.key_of(first): first.container}
        again = SegmentCache(options, compiled, saved)
        with again(import_graph(deep_model(1, "N"))) as second:
            np.testing.assert_array_equal(second.run(deep_input())["y"], wanted)
    assert made == [graph]


def test_keys_tell_graphs_weights_and_options_apart() -> None:
    graph, other = import_graph(deep_model(1)), import_graph(deep_model(2))
    model = deep_model(1)
    weight = model.graph.initializer[0]
    weight.raw_data = bytes(len(weight.raw_data))
    library = SegmentCache(make_options(), compile_container)
    keys = {library.key(g) for g in (graph, other, import_graph(model))}
    keys |= {SegmentCache(make_options(precision="bf16"), compile_container).key(graph)}
    keys |= {SegmentCache(make_options("x86-64-v3"), compile_container).key(graph)}
    disabled = make_options(disable_passes=["cse"])
    keys |= {SegmentCache(disabled, compile_container).key(graph)}
    assert len(keys) == 6
    assert library.key(import_graph(deep_model(1))) in keys
