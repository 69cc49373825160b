from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.cli.invoke import succeed
from tests.frontends.onnx.segments.segmented_models import AXES
from tilewright.cli.source import is_saved, model_ports, open_model, read_source
from tilewright.core.dtypes import F32
from tilewright.driver.graph_file import write_graph
from tilewright.driver.options import make_options
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def test_kinds_of_files(mlp_file: Path) -> None:
    succeed("compile", mlp_file, "-o", "renamed.onnx")
    assert is_saved(Path("renamed.onnx"))
    assert not is_saved(mlp_file)
    assert not is_saved(Path("missing"))
    assert not is_saved(Path())
    assert read_source(mlp_file) is mlp_file
    assert (
        open_model(Path("renamed.onnx"), make_options()).inputs
        == open_model(mlp_file, make_options()).inputs
    )


def test_a_model_that_is_compiled_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "axes.onnx"
    path.write_bytes(AXES.SerializeToString())
    with open_model(path, make_options(cache=False)) as model:
        assert isinstance(model, SegmentedModel)
        assert [port.shape for port in model_ports(path, {"n": 2})[0]] == [(2, "m"), ("k",)]
        saved = model.save(tmp_path / "axes.tw")
    assert [str(port) for port in model_ports(saved, {})[1]] == ["y: f32[...]"]


def test_graphs_are_read_from_their_text() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, 32))
    write_graph(Path("g.graph"), g.graph(g.add("add", x, g.constant(np.float32(2)))))
    assert isinstance(read_source(Path("g.graph")), Graph)
    with open_model(Path("g.graph"), make_options(cache=False)) as model:
        np.testing.assert_array_equal(model(np.ones(32, np.float32)), np.full(32, 3))


def test_ports_are_known_without_compiling(mlp_file: Path) -> None:
    inputs, outputs = model_ports(mlp_file, {})
    assert [str(port) for port in inputs] == ["x: f32[N, 16]"]
    assert [port.name for port in outputs] == ["probabilities"]
    assert model_ports(mlp_file, {"N": 3})[0][0].shape == (3, 16)
    succeed("compile", mlp_file, "-o", "m.tw")
    assert model_ports(Path("m.tw"), {}) == (inputs, outputs)
