from __future__ import annotations

import numpy as np
from onnx import TensorProto, TypeProto, helper

from tests.for_each import for_each
from tilewright.compat.onnxruntime.types import (
    Declared,
    NodeArg,
    element_of,
    numpy_of,
    shape_of,
    tensor_name,
    type_name,
)

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", None, 3])


@for_each(
    ("type", "text"),
    [
        (FLOATS, "tensor(float)"),
        (helper.make_tensor_type_proto(TensorProto.DOUBLE, []), "tensor(double)"),
        (helper.make_tensor_type_proto(TensorProto.STRING, None), "tensor(string)"),
        (helper.make_tensor_type_proto(TensorProto.BFLOAT16, None), "tensor(bfloat16)"),
        (helper.make_sequence_type_proto(FLOATS), "seq(tensor(float))"),
        (helper.make_optional_type_proto(FLOATS), "optional(tensor(float))"),
        (helper.make_map_type_proto(TensorProto.INT64, FLOATS), "map(int64,tensor(float))"),
        (helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2]), "sparse_tensor(float)"),
    ],
)
def test_types_as_text(type: TypeProto, text: str) -> None:
    assert type_name(type) == text


def test_shapes() -> None:
    assert shape_of(FLOATS) == ["N", None, 3]
    assert shape_of(helper.make_optional_type_proto(FLOATS)) == ["N", None, 3]
    assert shape_of(helper.make_sequence_type_proto(FLOATS)) == []
    assert shape_of(helper.make_tensor_type_proto(TensorProto.FLOAT, None)) == []


def test_sizes_that_are_given_are_numbers() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])
    assert Declared.of(value, {"N": 4}).node_arg().shape == [4, "M"]
    assert Declared.of(value, {}).node_arg().shape == ["N", "M"]


@for_each("name", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_elements_there_and_back(name: str) -> None:
    element = element_of(np.dtype(name))
    assert element is not None
    assert numpy_of(element) == np.dtype(name)


def test_elements_that_numpy_lacks() -> None:
    import ml_dtypes

    assert element_of(np.dtype(ml_dtypes.bfloat16)) == TensorProto.BFLOAT16
    assert numpy_of(TensorProto.BFLOAT16) is None
    assert element_of(np.dtype("datetime64[s]")) is None
    assert tensor_name(0) == "tensor(undefined)"


def test_texts_are_one_type() -> None:
    for dtype in ("O", "U3", "S3"):
        assert element_of(np.dtype(dtype)) == TensorProto.STRING
    assert numpy_of(TensorProto.STRING) == np.dtype(object)


def test_the_text_of_an_argument() -> None:
    text = str(NodeArg("x", ["N", 3], "tensor(float)"))
    assert text == "NodeArg(name='x', type='tensor(float)', shape=['N', 3])"
