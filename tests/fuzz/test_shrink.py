from __future__ import annotations

import numpy as np
from onnx import helper

from tests.fuzz.models import case_of
from tilewright.fuzz.campaign import values_of
from tilewright.fuzz.case_file import Case
from tilewright.fuzz.sandbox import SandboxLimits
from tilewright.fuzz.shrink import constants, shrink, with_arrays, with_graph


def _long() -> Case:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "k"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"], axis=1),
        helper.make_node("Neg", ["c"], ["d"]),
    ]
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    return case_of(nodes, {"x": x}, ["d", "b"], {"k": np.full(6, 0.3, np.float32)})


def _has_softmax(case: Case) -> bool:
    return any(node.op_type == "Softmax" for node in case.model.graph.node)


def test_only_what_fails_is_left() -> None:
    small = shrink(_long(), _has_softmax, lambda c: values_of(c, SandboxLimits()), 30)
    assert [node.op_type for node in small.model.graph.node] == ["Softmax"]
    assert not small.model.graph.node[0].attribute
    arrays = [*constants(small.model).values(), *small.runs[0].values()]
    assert [a.tolist() for a in arrays] == [[[0]]]


def test_what_no_output_needs_goes() -> None:
    case = with_graph(_long(), _long().model.graph.node, ["a"])
    assert [node.op_type for node in case.model.graph.node] == ["Relu"]
    assert not case.model.graph.initializer


def test_other_arrays_are_declared_as_they_are() -> None:
    arrays = {"x": np.ones((2, 3), np.float32), "k": np.ones(3, np.float32)}
    case = with_arrays(_long(), arrays)
    dims = case.model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [2, 3]
    assert case.runs[0]["x"].shape == (2, 3)
