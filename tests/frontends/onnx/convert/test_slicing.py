from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.arith.expr import Var
from tilewright.core.errors import FrontendError, UnsupportedError

RNG = np.random.default_rng(1)
N, S = Var("N"), Var("S")
MAX, MIN = 2**63 - 1, -(2**63)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def arrays(**lists: list[int]) -> dict[str, np.ndarray]:
    return {name: np.array(values, np.int64) for name, values in lists.items()}


def test_slice() -> None:
    x = random(5, 6, 7)
    check("Slice", {"x": x}, arrays(starts=[1, -2], ends=[MAX, 0], axes=[-1, 1], steps=[2, -1]))
    check("Slice", {"x": x}, arrays(starts=[0, 1], ends=[3, 100]))
    check("Slice", {"x": x}, arrays(starts=[4], ends=[2], axes=[0]))


def test_slice_with_attributes() -> None:
    x = random(5, 6)
    (found,) = results("Slice", {"x": x}, opset=9, starts=[1, 0], ends=[-1, 3])
    np.testing.assert_array_equal(found, x[1:-1, :3])
    (found,) = results("Slice", {"x": x}, opset=9, starts=[-3], ends=[MAX], axes=[1])
    np.testing.assert_array_equal(found, x[:, -3:])


def test_a_slice_of_everything_is_nothing() -> None:
    graph = imported("Slice", {"x": random(5)}, arrays(starts=[0], ends=[MAX]))
    assert [n.op for n in graph.nodes] == ["identity"]


def test_slice_refusals() -> None:
    x = random(5)
    with pytest.raises(FrontendError, match="do not fit"):
        imported("Slice", {"x": x}, arrays(starts=[0, 1], ends=[3]))
    with pytest.raises(FrontendError, match="do not fit"):
        imported("Slice", {"x": x}, arrays(starts=[0], ends=[3], axes=[0], steps=[0]))
    with pytest.raises(UnsupportedError, match="known only when the model runs"):
        imported("Slice", {"x": x, **arrays(starts=[0], ends=[3], axes=[0])})


def test_concat() -> None:
    check("Concat", {"a": random(2, 1), "b": random(2, 3), "c": random(2, 0)}, axis=-1)
    check("Concat", {"a": random(2, 1)}, axis=0)


def test_concat_of_symbolic_sizes() -> None:
    dims = {"a": ("A", "D"), "b": ("B", "D")}
    graph = imported("Concat", {"a": random(2, 3), "b": random(4, 3)}, dims=dims, axis=0)
    assert str(graph.types["y"]) == "f32[A + B, D]"


@for_each("outputs", [("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")])
def test_split_in_equal_parts(outputs: tuple[str, ...]) -> None:
    x = random(2, 7)
    check("Split", {"x": x}, outputs=outputs, axis=1, num_outputs=len(outputs))


def test_split_in_given_parts() -> None:
    x = random(2, 7)
    outputs = ("a", "b", "c")
    check("Split", {"x": x}, arrays(split=[2, 0, 5]), outputs=outputs, axis=-1)
    found = results("Split", {"x": x}, opset=11, outputs=outputs, axis=1, split=[2, 4, 1])
    for ours, wanted in zip(found, np.split(x, [2, 6], 1), strict=True):
        np.testing.assert_array_equal(ours, wanted)
    found = results("Split", {"x": random(6)}, opset=11, outputs=outputs)
    assert [y.shape for y in found] == [(2,)] * 3
    with pytest.raises(FrontendError, match="do not split"):
        imported("Split", {"x": x}, arrays(split=[2, 2, 2]), outputs=outputs, axis=1)


@for_each("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    check("Pad", {"x": random(3, 4)}, arrays(pads=[1, 2, 0, 3]), mode=mode)


def test_pad_with_axes_and_value() -> None:
    x = random(3, 4)
    constants = {**arrays(pads=[1, 2], axes=[-2]), "value": np.array(2.5, np.float32)}
    order = ("x", "pads", "value", "axes")
    check("Pad", {"x": x}, constants, order=order)
    value = constants.pop("value")
    check("Pad", {"x": x, "value": value}, constants, order=order)


def test_pad_with_attributes() -> None:
    x = random(3, 4)
    (found,) = results("Pad", {"x": x}, opset=10, pads=[0, -1, 1, 2], value=-1.5)
    expected = np.pad(x[:, 1:], ((0, 1), (0, 2)), constant_values=-1.5)
    np.testing.assert_array_equal(found, expected)


def test_pad_refusals() -> None:
    with pytest.raises(FrontendError, match="3 pads for 2 dimensions"):
        imported("Pad", {"x": random(2, 2)}, arrays(pads=[1, 1, 1]))


def test_no_padding_is_nothing() -> None:
    graph = imported("Pad", {"x": random(2, 2)}, arrays(pads=[0, 0, 0, 0]))
    assert [n.op for n in graph.nodes] == ["identity"]


@for_each("size", [4, 5, 7, 8, 10, 11])
def test_center_crop_pad(size: int) -> None:
    check("CenterCropPad", {"x": random(3, 7)}, arrays(shape=[size]), axes=[1])
