from __future__ import annotations

import numpy as np
import pytest

from tests.driver.bisect.deep_model import deep_input, deep_model
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import ExecutionError
from tilewright.driver.bisect import reference_values as module
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options
from tilewright.driver.sources import import_graph
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.target.host import host


def never(*_: object) -> list[np.ndarray]:
    raise AssertionError("machine code")


def test_the_meaning_is_the_interpreters() -> None:
    graph = import_graph(deep_model(3, "N"))
    reference = ReferenceValues(deep_input(), never)
    np.testing.assert_array_equal(reference.outputs(graph)[0], run_graph(graph, deep_input())["y"])
    assert reference.sizes(graph) == {"N": 3}


def test_groups_cost_nothing_once_their_nodes_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    model = deep_model(2)
    reference = ReferenceValues(deep_input(), never)
    graph = optimized_graph(model, make_options())
    first = reference.outputs(graph)[0]
    monkeypatch.setattr(module, "evaluate_node", never)
    assert reference.outputs(graph)[0] is first


def test_long_loops_run_as_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    g = GraphBuilder("g")
    x = g.input("x", TensorType(F32, (Var("N"), const(5))))
    graph = g.graph(g.add("cumsum", x, attrs=ScanAttrs(axis=1), name="y"))
    data = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    native = NativeRunner(host())
    monkeypatch.setattr(module, "INTERPRETED", 0)
    (y,) = ReferenceValues({"x": data}, native.run_unscheduled).outputs(graph)
    np.testing.assert_allclose(y, data.cumsum(1), rtol=1e-6)
    assert native.compilations == 1


def test_checks_must_hold() -> None:
    graph = import_graph(deep_model(1))
    with pytest.raises(ExecutionError, match="shape"):
        ReferenceValues({"x": np.zeros((1, 2), np.float32)}, never).outputs(graph)
