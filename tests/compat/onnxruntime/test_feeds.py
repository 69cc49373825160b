"""What sequences, optionals, texts and maps are fed with; tensors are in `test_session`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, TypeProto, helper

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import assert_alike, model, tensor
from tests.for_each import for_each
from tilewright.compat.onnxruntime.feeds import fitting
from tilewright.compat.onnxruntime.types import Declared

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(FLOATS)
OPTIONAL = helper.make_optional_type_proto(FLOATS)


def _value(name: str, type: TypeProto) -> Any:
    return helper.make_value_info(name, type)


INSERT = model(
    [helper.make_node("SequenceInsert", ["s", "x"], ["o"])],
    [_value("s", SEQUENCE), tensor("x", None)],
    [_value("o", SEQUENCE)],
).SerializeToString()
HAS = model(
    [helper.make_node("OptionalHasElement", ["a"], ["o"])],
    [_value("a", OPTIONAL)],
    [tensor("o", [], TensorProto.BOOL)],
).SerializeToString()
NONE = model(
    [helper.make_node("Optional", [], ["o"], type=FLOATS)], [], [_value("o", OPTIONAL)]
).SerializeToString()
TEXTS = model(
    [helper.make_node("Identity", ["a"], ["o"])],
    [tensor("a", ["n"], TensorProto.STRING)],
    [tensor("o", ["n"], TensorProto.STRING)],
).SerializeToString()
MAP = helper.make_map_type_proto(
    TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
)
TO_MAPS = model(
    [
        helper.make_node(
            "ZipMap", ["x"], ["o"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"]
        )
    ],
    [tensor("x", [None, 3])],
    [_value("o", helper.make_sequence_type_proto(MAP))],
).SerializeToString()
FROM_MAP = model(
    [
        helper.make_node(
            "DictVectorizer", ["m"], ["o"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]
        )
    ],
    [_value("m", MAP)],
    [tensor("o", [1, 2])],
).SerializeToString()


@for_each(
    ("source", "feed"),
    [
        (INSERT, {"s": [X], "x": X[0]}),
        (INSERT, {"s": [], "x": X[0]}),
        (INSERT, {"s": [X], "x": [1.0, 2.0]}),
        (INSERT, {"s": X, "x": X[0]}),
        (INSERT, {"s": (X,), "x": X[0]}),
        (INSERT, {"s": [X.astype(np.float64)], "x": X[0]}),
        (INSERT, {"s": None, "x": X[0]}),
        (HAS, {"a": X}),
        (HAS, {"a": None}),
        (HAS, {}),
        (NONE, {}),
        (TEXTS, {"a": np.array(["x", "yy"])}),
        (TEXTS, {"a": np.array(["x", "yy"], object)}),
        (TEXTS, {"a": np.array([1, None], object)}),
        (TEXTS, {"a": ["x", "y"]}),
        (TEXTS, {"a": np.array([1])}),
        (TEXTS, {"a": np.array([["x"]])}),
        (TO_MAPS, {"x": X}),
        (FROM_MAP, {"m": {"b": 2.0, "a": 1.0}}),
    ],
)
def test_feeds(source: bytes, feed: Any) -> None:
    assert_alike(lambda engine: engine.InferenceSession(source).run(None, feed))


@for_each("source", [INSERT, HAS, NONE, TEXTS, TO_MAPS, FROM_MAP])
def test_faces(source: bytes) -> None:
    def face(engine: Any) -> Any:
        session = engine.InferenceSession(source)
        return [(a.name, a.type) for a in [*session.get_inputs(), *session.get_outputs()]]

    assert_alike(face)


def test_bytes_are_texts() -> None:
    outputs = ours.InferenceSession(TEXTS).run(None, {"a": np.array([b"x", b"yy"])})
    assert outputs[0].tolist() == ["x", "yy"]


def test_maps() -> None:
    declared = Declared.of(_value("m", helper.make_map_type_proto(TensorProto.STRING, FLOATS)), {})
    assert fitting(declared, {"a": 1.0}) == {"a": 1.0}
    with pytest.raises(RuntimeError, match="Unable to handle object of type <class 'list'>"):
        fitting(declared, [1.0])


def test_lists_that_are_no_array() -> None:
    declared = Declared.of(tensor("x", [None]), {})
    with pytest.raises(RuntimeError, match="Unable to handle"):
        fitting(declared, [[1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(fitting(declared, [1, 2]), np.array([1, 2], np.float32))
