from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tilewright.driver.compile_graph import lower, optimized_graph
from tilewright.driver.options import make_options
from tilewright.driver.timings import Timings


def test_the_graph_of_kernels_keeps_its_outputs_names() -> None:
    graph = KERNELS["mlp"](4, 8, 8)
    after = optimized_graph(graph, make_options())
    assert after.outputs == graph.outputs
    assert any(n.op == "fused" for n in after.nodes)
    again = optimized_graph(after, make_options())
    assert again.outputs == after.outputs
    assert len(again.nodes) == len(after.nodes)


def test_time_is_counted_by_stage() -> None:
    timings = Timings()
    stages: list[str] = []
    lower(
        KERNELS["dense"](4, 8, 8),
        make_options(target="aarch64", timings=timings, progress=stages.append),
    )
    assert stages == ["graph", "kernels"]
    assert {"import", "graph passes", "lower", "schedule", "finalize", "emit LLVM"} <= set(
        timings.stages
    )
    assert "fuse" in timings.table()
