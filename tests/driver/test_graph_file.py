from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.dtypes import BF16, F32
from tilewright.core.errors import ConfigError
from tilewright.driver.graph_file import read_graph, write_graph
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _graph() -> Graph:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, 32))
    w = g.constant(np.arange(32, dtype=np.float32), "file")
    return g.graph(g.add("add", g.add("mul", x, w), g.constant(np.float32(2))))


def test_graphs_with_their_constants() -> None:
    graph = _graph()
    assert write_graph(Path("g.graph"), graph) == [Path("g.graph"), Path("g.npz")]
    assert print_graph(read_graph(Path("g.graph"))) == print_graph(graph)


def test_constants_of_types_that_files_do_not_know() -> None:
    data = np.arange(40).astype(ml_dtypes.bfloat16)
    g = GraphBuilder("g")
    x = g.input("x", tensor(BF16, data.size))
    graph = g.graph(g.add("add", x, g.constant(data, "file")))
    write_graph(Path("g.graph"), graph)
    (constant,) = read_graph(Path("g.graph")).constants
    assert constant.data.dtype == data.dtype
    np.testing.assert_array_equal(constant.data, data)


def test_damaged_constants() -> None:
    write_graph(Path("g.graph"), _graph())
    Path("g.npz").write_bytes(b"PK nonsense")
    with pytest.raises(ConfigError, match=r"cannot read g\.npz"):
        read_graph(Path("g.graph"))
