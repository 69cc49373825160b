from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from onnx import helper

from tests.compat.onnxruntime.both import assert_alike, model, tensor


@pytest.mark.parametrize(
    ("op", "shape", "declared"),
    [
        ("Relu", ["N", 3], ["N", 3]),
        ("Relu", ["N", 3], [None, None]),
        ("Relu", ["N", 3], ["M", 3]),
        ("Relu", [None, 3], [None, 3]),
        ("Relu", [2, 3], None),
        ("Shape", ["N", 3], None),
        ("Transpose", ["N", 3], None),
    ],
)
def test_outputs_have_the_shapes_that_are_known(op: str, shape: Any, declared: Any) -> None:
    element = 7 if op == "Shape" else 1
    data = model(
        [helper.make_node(op, ["x"], ["z"])], [tensor("x", shape)], [tensor("z", declared, element)]
    ).SerializeToString()

    def shapes(engine: ModuleType) -> Any:
        return [a.shape for a in engine.InferenceSession(data).get_outputs()]

    assert_alike(shapes)
