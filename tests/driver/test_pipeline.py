from __future__ import annotations

import pytest

from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.driver.pipeline import GRAPH_PASSES, ON_GPU, PASSES, find_pass
from tilewright.passes.manager import run_passes


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = run_passes(graph, GRAPH_PASSES[:-1])
    assert_same_results(graph, after, rtol=1e-5)


def test_passes_are_named_for_what_runs():
    assert [p.name for p in GRAPH_PASSES][-1] == "fuse"
    assert all(p.doc.endswith(".") for p in GRAPH_PASSES)
    names = [p.name for p in GRAPH_PASSES]
    assert all(p.run.__module__.startswith("tilewright.passes.") for p in GRAPH_PASSES), names


def test_what_a_gpu_has_instead():
    names = [p.name for p in PASSES["gpu"]]
    assert {p.name for p in ON_GPU.values()} <= {*names}
    assert "winograd" not in names
    assert all(p.doc.endswith(".") for p in ON_GPU.values())
    assert find_pass("pad-channels") is ON_GPU["winograd"]
