"""Elements that are only stored: what moves them keeps their bits, compiled, saved and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core.dtypes import C64, C128, SMALL_FLOATS, SMALL_INTEGERS, DType
from tilewright.frontends.onnx.model.dtypes import DTYPES

CODES = {dtype: code for code, dtype in DTYPES.items()}
STORED = (*SMALL_FLOATS, *SMALL_INTEGERS, C64, C128)
SHAPE = (3, 7, 5)
INTEGERS = {
    "shape": [15, 7],
    "starts": [1, 0],
    "stops": [7, 4],
    "axes": [1, 2],
    "steps": [2, 3],
    "rows": [2, 0, -1],
    "pads": [0, 1, 0, 2, 0, 3],
    "repeats": [2, 1, 3],
}


def _elements(dtype: DType, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if dtype.kind == "complex":
        parts = rng.integers(-2, 3, (2, *shape))
        return (parts[0] + 1j * parts[1]).astype(dtype.numpy)
    return rng.integers(0, 1 << dtype.bits, shape).astype(np.uint8).view(dtype.numpy)


def _model(dtype: DType, stored: np.ndarray) -> ModelProto:
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Transpose", ["x"], ["turned"], perm=[2, 0, 1]),
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("Concat", ["x", "k"], ["joined"], axis=1),
        helper.make_node("Slice", ["x", "starts", "stops", "axes", "steps"], ["cut"]),
        helper.make_node("Gather", ["x", "rows"], ["rows_of"]),
        helper.make_node("Pad", ["x", "pads"], ["padded"]),
        helper.make_node("Tile", ["x", "repeats"], ["tiled"]),
        helper.make_node("Where", ["mask", "x", "k"], ["chosen"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", CODES[dtype], ["N", *SHAPE[1:]]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, SHAPE),
    ]
    constants = [numpy_helper.from_array(np.array(v), k) for k, v in INTEGERS.items()]
    outputs = [helper.make_empty_tensor_value_info(n.output[0]) for n in nodes]
    constants.append(numpy_helper.from_array(stored, "k"))
    graph = helper.make_graph(nodes, "moves", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def _expected(x: np.ndarray, k: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    padded = np.zeros((5, 8, 8), x.dtype)
    padded[:3, 1:, :5] = x
    return {
        "same": x,
        "turned": x.transpose(2, 0, 1),
        "flat": x.reshape(15, 7),
        "joined": np.concatenate([x, k], 1),
        "cut": x[:, 1:7:2, 0:4:3],
        "rows_of": x[[2, 0, -1]],
        "padded": padded,
        "tiled": np.tile(x, (2, 1, 3)),
        "chosen": np.where(mask, x, k),
    }


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_moves(dtype: DType, tmp_path: Path) -> None:
    x, k = _elements(dtype, *SHAPE), _elements(dtype, *SHAPE)[::-1].copy()
    mask = np.random.default_rng(1).integers(0, 2, SHAPE).astype(bool)
    expected = _expected(x, k, mask)
    with tw.compile(_model(dtype, k), threads=1, cache=False) as executable:
        executable.save(tmp_path / "moves.tw")
    with tw.load(tmp_path / "moves.tw") as executable:
        found = executable.run({"x": x, "mask": mask})
    for name, array in expected.items():
        assert found[name].dtype == dtype.numpy
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes(), name
