from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tilewright.fuzz.case_file import Case, read_case, write_case
from tilewright.fuzz.random_values import numpy_dtype

ARRAYS = [
    np.array([np.nan, np.inf, -0.0, 1e-45, 0.1], np.float32),
    np.array([-(1 << 63), (1 << 63) - 1], np.int64),
    np.array([(1 << 64) - 1], np.uint64),
    np.array([True, False]),
    np.zeros((2, 0, 3), np.float16),
    np.array(1.5, numpy_dtype("bfloat16")),
    np.array([1 + 2j], np.complex64),
    np.array(["a", "é"], object),
]


@pytest.mark.parametrize("array", ARRAYS, ids=[a.dtype.name for a in ARRAYS])
def test_arrays_come_back_bit_by_bit(array: np.ndarray, tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    model = helper.make_model(helper.make_graph([], "g", [value], [value]))
    path = write_case(tmp_path / "some.onnx", Case(model, ({"x": array},), {"kind": "wrong"}))
    back = read_case(path)
    found = back.runs[0]["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tolist() == array.tolist() or found.tobytes() == array.tobytes()
    assert back.model == model
    assert back.notes == {"kind": "wrong"}
