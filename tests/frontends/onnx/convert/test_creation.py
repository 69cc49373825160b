from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ops.interpret import run_graph

X = np.zeros((2, 3, 4), np.float32)


@for_each(("start", "end"), [(0, 3), (1, 2), (-1, 9), (-9, -1), (2, 1)])
def test_shape(start: int, end: int) -> None:
    check("Shape", {"x": X}, start=start, end=end)
    check("Shape", {"x": X}, opset=13)


def test_size() -> None:
    check("Size", {"x": X})
    check("Size", {"x": np.zeros(())})


@for_each("shape", [[2, 3], [], [0]])
@for_each("value", [None, [1.5], [7], [True]])
def test_constant_of_shape(shape: list[int], value: list | None) -> None:
    constants = {"shape": np.array(shape, np.int64)}
    given = {} if value is None else {"value": helper.make_tensor("v", *_tensor(value))}
    check("ConstantOfShape", {}, constants, **given)


def _tensor(value: list) -> tuple[int, list[int], list]:
    kinds = {float: TensorProto.FLOAT, int: TensorProto.INT32, bool: TensorProto.BOOL}
    return kinds[type(value[0])], [1], value


@for_each(
    "bounds",
    [
        (0, 5, 1),
        (5, 0, -2),
        (3, 3, 1),
        (3, 0, 1),
        (0.0, 4.0, 1.0),
        (0.5, 2.0, 0.25),
        (1.0, 0.0, 2.0),
    ],
)
def test_range(bounds: tuple) -> None:
    dtype = np.float32 if isinstance(bounds[0], float) else np.int64
    check("Range", {}, dict(zip("abc", (np.array(b, dtype) for b in bounds), strict=True)))


def test_range_refusals() -> None:
    with pytest.raises(FrontendError, match="delta is 0"):
        imported("Range", {}, {"a": np.array(0), "b": np.array(3), "c": np.array(0)})
    with pytest.raises(UnsupportedError, match="known only when the model runs"):
        imported("Range", {"a": np.array(0)}, {"b": np.array(3), "c": np.array(1)})


@for_each("step", [1e-30, -1e-9, 2.0**-29])
def test_a_range_beyond_all_memory(step: float) -> None:
    bounds = (0.5, 1.5 if step > 0 else -0.5, step)
    constants = dict(zip("abc", map(np.array, bounds), strict=True))
    with pytest.raises(UnsupportedError, match=r"a table of [0-9]+ numbers"):
        imported("Range", {}, constants)


@for_each("bounds", [(0.0, 2.0**64, 1.0), (1e300, 0.0, -1e280)])
def test_a_range_of_whole_numbers_beyond_64_bits(bounds: tuple[float, ...]) -> None:
    with pytest.raises(UnsupportedError, match=r"a table of [0-9]+ numbers"):
        imported("Range", {}, dict(zip("abc", map(np.array, bounds), strict=True)))
    few = (bounds[0], bounds[1], (bounds[1] - bounds[0]) / 4)
    check("Range", {}, dict(zip("abc", map(np.array, few), strict=True)))


@for_each("to", [TensorProto.INT64, TensorProto.FLOAT])
def test_range_of_a_dynamic_size(to: int) -> None:
    """Some exporters count in floats."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=0, end=1),
        helper.make_node("Squeeze", ["shape"], ["size"]),
        helper.make_node("Cast", ["size"], ["n"], to=to),
        helper.make_node("Range", ["zero", "n", "one"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])]
    outputs = [helper.make_tensor_value_info("y", to, None)]
    scalars = [helper.make_tensor(n, to, [], [v]) for n, v in (("zero", 0), ("one", 1))]
    graph = helper.make_graph(nodes, "g", inputs, outputs, scalars)
    found = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert str(found.types["y"].shape[0]) == "N"
    y = run_graph(found, {"x": np.zeros((4, 2), np.float32)})["y"]
    np.testing.assert_array_equal(y, range(4))


@for_each("k", [-1, 0, 2])
def test_eye_like(k: int) -> None:
    check("EyeLike", {"x": np.zeros((3, 4), np.int32)}, k=k)
    check("EyeLike", {"x": np.zeros((3, 4), np.int32)}, k=k, dtype=TensorProto.DOUBLE)
