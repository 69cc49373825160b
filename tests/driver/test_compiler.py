from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.models import mlp
from tilewright.arith.expr import Var
from tilewright.core.errors import ConfigError
from tilewright.driver.compiler import Timings, import_graph, lower, lower_to_graph


def test_the_graph_of_kernels_keeps_its_outputs_names() -> None:
    graph = KERNELS["mlp"](4, 8, 8)
    after = lower_to_graph(graph, {}, Timings())
    assert after.outputs == graph.outputs
    assert any(n.op == "fused" for n in after.nodes)
    again = lower_to_graph(after, {}, Timings())
    assert again.outputs == after.outputs
    assert len(again.nodes) == len(after.nodes)


def test_sources_become_graphs() -> None:
    assert [str(v.type) for v in import_graph(mlp("N")).inputs] == ["f32[N, 16]"]
    assert [str(v.type) for v in import_graph(mlp("N"), {"N": 3}).inputs] == ["f32[3, 16]"]
    bound = import_graph(KERNELS["softmax"](Var("M"), 4, 1), {"M": 7})
    assert [str(v.type) for v in bound.inputs] == ["f32[7, 4]"]


def test_sizes_cannot_be_set_after_fusion() -> None:
    fused = lower_to_graph(KERNELS["softmax"](Var("M"), 4, 1), {}, Timings())
    with pytest.raises(ConfigError, match=r"dims.fused"):
        import_graph(fused, {"M": 3})


def test_time_is_counted_by_stage() -> None:
    timings = Timings()
    stages: list[str] = []
    lower(KERNELS["dense"](4, 8, 8), target="aarch64", timings=timings, progress=stages.append)
    assert stages == ["graph", "kernels"]
    assert {"import", "graph passes", "lower and schedule kernels"} <= set(timings.stages)
    assert "fuse" in timings.table()
