"""The constants of graphs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.model.constants import graph_constants, model_constants
from tilewright.frontends.onnx.model.read import read_model
from tilewright.frontends.onnx.model.tensors import TensorReader


def graph(*names: str) -> helper.GraphProto:
    tensors = [numpy_helper.from_array(np.full(2, i, np.float32), n) for i, n in enumerate(names)]
    return helper.make_graph([], "g", [], [], tensors)


def test_each_is_read_when_it_is_used() -> None:
    m = helper.make_model(graph("a", "b"))
    for found in (model_constants(read_model(m)), graph_constants(m.graph, TensorReader(None))):
        assert {name: array().tolist() for name, array in found.items()} == {
            "a": [0, 0],
            "b": [1, 1],
        }
    m.graph.initializer[0].data_type = 99
    found = model_constants(read_model(m))
    with pytest.raises(UnsupportedError, match="element type 99"):
        found["a"]()


def test_a_name_is_used_once() -> None:
    with pytest.raises(FrontendError, match="'a' is defined twice"):
        graph_constants(graph("a", "b", "a"), TensorReader(None))
