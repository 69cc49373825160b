from __future__ import annotations

import json

import pytest

from tests.differential.kernel_graphs import KERNELS
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import UnsupportedError
from tilewright.driver.artifact.manifest import make_manifest
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def test_everything_a_runtime_needs() -> None:
    build = lower(KERNELS["dense"](Var("M"), 8, Var("K")), make_options(target="x86-64-v3"))
    manifest = make_manifest(build)
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["symbols"] == ["M", "K"]
    assert manifest["dim_sources"] == [[0, 0], [0, 1]]
    assert manifest["inputs"][0] == {"name": "x0", "dtype": "f32", "shape": ["M", "K"]}
    assert manifest["outputs"][0]["shape"] == ["M", 8]
    assert manifest["target"]["cpu"] == "x86-64-v3"
    assert "+avx2" in manifest["target"]["features"]
    assert "1 distinct kernels" in manifest["explain"]
    assert manifest["counters"] == {"kernels": 1, "steps": 1}
    assert [k["name"] for k in manifest["kernels"]] == [s.kernel.name for s in build.steps]
    assert manifest["kernels"][0]["flops"] == "K * M * 16 + M * 24"
    assert manifest["schedules"].keys() == {k["name"] for k in manifest["kernels"]}


def test_costs_of_known_sizes_are_numbers() -> None:
    build = lower(KERNELS["matmul"](4, 8, 16), make_options(target="aarch64"))
    (kernel,) = make_manifest(build)["kernels"]
    assert kernel["flops"] == 2 * 4 * 8 * 16
    assert kernel["bytes"] == 4 * (4 * 16 + 16 * 8 + 4 * 8)


def test_a_size_that_no_input_shows_is_refused() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N") * 2))
    build = lower(g.graph(g.add("neg", x)), make_options(target="aarch64"))
    with pytest.raises(UnsupportedError, match=r"driver.symbol.*N") as error:
        make_manifest(build)
    assert "dims" in error.value.help
