from __future__ import annotations

import numpy as np
import pytest

from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.core.dtypes import F16, F32
from tilewright.driver.pipeline import GRAPH_PASSES, ON_GPU, PASSES, find_pass, graph_passes
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.manager import PassLog, run_passes
from tilewright.target.registry import resolve_gpu


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
    own = [p for passes in ON_GPU.values() for p in passes]
    assert {p.name for p in own} <= {*names}
    assert "winograd" not in names
    assert all(p.doc.endswith(".") for p in own)
    assert find_pass("pad-for-tensor-cores") is ON_GPU["winograd"][0]


@pytest.mark.parametrize("precision", ["f32", "fp16", "bf16", "tf32"])
@pytest.mark.parametrize("dtype", [F32, F16])
def test_channels_are_last_where_matrices_read_them(precision, dtype):
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, 2, 8, 5, 5))
    weights = g.constant(np.ones((16, 8, 3, 3), dtype.numpy))
    values = {"strides": (1, 1), "pads": (1,) * 4, "dilations": (1, 1)}
    graph = g.graph(g.add("conv", x, weights, attrs=make_attrs("conv", values)))
    after = run_passes(graph, graph_passes(precision, resolve_gpu("cuda"), PassLog())[:-1])
    (layout,) = (n.attrs.layout for n in after.nodes if n.op == "conv")
    wide = precision == "f32" and dtype is F32
    assert layout == ("channels_first" if wide else "channels_last")
