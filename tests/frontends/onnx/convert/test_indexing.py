from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.core.errors import FrontendError, UnsupportedError

RNG = np.random.default_rng(2)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@for_each("axis", [0, 1, -1])
@for_each("indices", [-1, [2], [[0], [1]], [[1, -2], [0, 2]]])
def test_gather(axis: int, indices: object) -> None:
    x, places = random(3, 4, 5), np.array(indices)
    check("Gather", {"x": x, "i": places}, axis=axis)
    check("Gather", {"x": x}, {"i": places}, axis=axis)


def test_gather_of_one_known_index_is_a_slice() -> None:
    dims = {"x": ("N", "S", 5)}
    graph = imported("Gather", {"x": random(3, 4, 5)}, {"i": np.array(-1)}, axis=1, dims=dims)
    assert [n.op for n in graph.nodes] == ["slice", "reshape"]
    assert str(graph.types[graph.outputs[0]]) == "f32[N, 5]"
    (found,) = results("Gather", {"x": (x := random(3, 4, 5))}, {"i": np.array(-1)}, axis=1)
    np.testing.assert_array_equal(found, x[:, -1])


def test_gather_refuses_a_known_index_outside() -> None:
    with pytest.raises(FrontendError, match="index 3 is outside"):
        imported("Gather", {"x": random(3)}, {"i": np.array(3)})


def test_gather_elements_and_nd() -> None:
    x = random(3, 4)
    check("GatherElements", {"x": x, "i": RNG.integers(-3, 3, (2, 4))}, axis=0)
    check("GatherND", {"x": x, "i": RNG.integers(0, 3, (5, 2))})
    check("GatherND", {"x": x, "i": RNG.integers(0, 3, (3, 1))}, batch_dims=1)


@for_each("reduction", ["none", "add", "mul", "min", "max"])
def test_scatter(reduction: str) -> None:
    x = random(4, 3)
    rows = np.array([[0, 3, 1], [2, -4, 2]])
    check("ScatterElements", {"x": x, "i": rows, "u": random(2, 3)}, axis=0, reduction=reduction)
    updates = {"x": x, "i": np.array([[3], [1]]), "u": random(2, 3)}
    check("ScatterND", updates, reduction=reduction)


def test_scatter_of_old() -> None:
    x, u = random(4, 3), random(1, 3)
    (found,) = results("Scatter", {"x": x, "i": np.array([[1, 0, 3]]), "u": u}, opset=10)
    x[[1, 0, 3], [0, 1, 2]] = u[0]
    np.testing.assert_array_equal(found, x)


@for_each("axis", [0, 1, -1])
@for_each("depth", [np.array(4), np.array(4.0, np.float32)])
def test_one_hot(axis: int, depth: np.ndarray) -> None:
    inputs = {"i": np.array([[0, 3], [-1, 2]]), "v": np.array([0.5, 2.0], np.float32)}
    check("OneHot", inputs, {"d": depth}, order=("i", "d", "v"), axis=axis)


def test_one_hot_needs_a_known_depth() -> None:
    inputs = {"i": np.array([0]), "d": np.array([4]), "v": np.array([0.5, 2.0])}
    with pytest.raises(UnsupportedError, match="known only when the model runs"):
        imported("OneHot", inputs)


@for_each("largest", [0, 1])
def test_topk(largest: int) -> None:
    x, k = random(3, 6), {"k": np.array([4])}
    check("TopK", {"x": x}, k, outputs=("v", "i"), largest=largest, axis=-1)
    check("TopK", {"x": x}, {"k": np.array([2])}, outputs=("v", "i"), largest=largest, axis=0)


def test_topk_with_an_attribute() -> None:
    x = random(3, 6)
    values, indices = results("TopK", {"x": x}, opset=9, outputs=("v", "i"), k=2)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)


def test_reverse_sequence() -> None:
    inputs = {"x": random(4, 3), "n": np.array([1, 4, 2])}
    check("ReverseSequence", inputs)
    check("ReverseSequence", {"x": random(3, 4), "n": inputs["n"]}, time_axis=1, batch_axis=0)


def test_tensor_scatter() -> None:
    cache, update = np.zeros((2, 5, 3), "f4"), np.ones((2, 2, 3), "f4")
    starts = np.array([1, 4])
    inputs = {"cache": cache, "update": update, "starts": starts}
    check("TensorScatter", inputs, mode="circular", axis=1, opset=24)
    with pytest.raises(FrontendError, match="mode is 'square'"):
        imported("TensorScatter", inputs, mode="square", opset=24)


def test_infinitely_many_classes() -> None:
    depth, values = np.array(np.inf, np.float32), np.array([0, 1], np.float32)
    with pytest.raises(FrontendError, match="inf classes"):
        imported("OneHot", {"i": np.array([1])}, {"d": depth, "v": values})
