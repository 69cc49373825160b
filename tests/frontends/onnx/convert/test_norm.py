from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node
from tilewright.core.errors import Error

RNG = np.random.default_rng(24)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def statistics(channels: int) -> list[np.ndarray]:
    scale, bias, mean = (normal(channels) for _ in range(3))
    return [scale, bias, mean, np.abs(normal(channels)) + 0.1]


@for_each("opset", [7, 9, 14, 15])
@for_each("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
@for_each("constants", [(), (1, 2, 3, 4)])
def test_batch_norm(opset: int, shape: tuple[int, ...], constants: tuple[int, ...]) -> None:
    inputs = [normal(*shape), *statistics(3)]
    check_node("BatchNormalization", inputs, opset=opset, constants=constants, epsilon=1e-3)


def test_constant_statistics_become_two_operators() -> None:
    inputs = [normal(2, 3, 4, 5), *statistics(3)]
    graph = imported("BatchNormalization", inputs, constants=(1, 2, 3, 4))
    assert [n.op for n in graph.nodes] == ["mul", "add"]


def test_statistics_of_another_type() -> None:
    x = normal(2, 3, 4).astype(np.float16)
    parameters = [p.astype(np.float16) for p in statistics(3)[:2]] + statistics(3)[2:]
    for constants in ((), (1, 2, 3, 4)):
        check_node(
            "BatchNormalization",
            [x, *parameters],
            opset=15,
            constants=constants,
            rtol=2e-2,
            atol=1e-2,
        )


def test_training_batch_norm() -> None:
    x, (scale, bias, mean, variance) = normal(4, 3, 5), statistics(3)
    y, new_mean, new_variance = run_node(
        "BatchNormalization",
        [x, scale, bias, mean, variance],
        opset=15,
        outputs=3,
        training_mode=1,
        momentum=0.75,
    )
    own_mean, own_variance = x.mean((0, 2)), x.var((0, 2))
    rows = (x - own_mean[:, None]) / np.sqrt(own_variance[:, None] + 1e-5)
    np.testing.assert_allclose(y, rows * scale[:, None] + bias[:, None], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(new_mean, 0.75 * mean + 0.25 * own_mean, rtol=1e-4, atol=1e-6)
    expected = 0.75 * variance + 0.25 * own_variance
    np.testing.assert_allclose(new_variance, expected, rtol=1e-4, atol=1e-6)


@for_each("axis", [-1, 1, 2])
@for_each("bias", [False, True])
def test_layer_norm(axis: int, bias: bool) -> None:
    x = normal(2, 3, 4, 5)
    parameters = [normal(*x.shape[axis:]) for _ in range(1 + bias)]
    check_node("LayerNormalization", [x, *parameters], axis=axis, epsilon=1e-3)
    check_node("LayerNormalization", [x, *parameters], axis=axis, outputs=3)


def test_layer_norm_statistics_of_doubles_are_stashed_as_floats() -> None:
    x = RNG.standard_normal((3, 4))
    found = run_node("LayerNormalization", [x, np.ones(4)], outputs=3)
    assert [y.dtype for y in found] == [np.float64, np.float32, np.float32]


def test_rms_norm() -> None:
    x, scale = normal(2, 3, 4), normal(3, 4)
    found = run_node("RMSNormalization", [x, scale], opset=23, axis=1, epsilon=1e-3)[0]
    expected = x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 1e-3) * scale
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@for_each("opset", [18, 21])
@for_each("constants", [(), (1, 2)])
def test_group_norm(opset: int, constants: tuple[int, ...]) -> None:
    per = 2 if opset == 18 else 6  # one scale a group, or one a channel
    inputs = [normal(2, 6, 4, 3), normal(per), normal(per)]
    check_node("GroupNormalization", inputs, opset=opset, num_groups=2, constants=constants)


@for_each("shape", [(2, 3, 7), (2, 3, 4, 5)])
def test_instance_norm(shape: tuple[int, ...]) -> None:
    check_node("InstanceNormalization", [normal(*shape), normal(3), normal(3)], epsilon=1e-3)


@for_each("axis", [-1, 0, 1])
@for_each("p", [1, 2])
def test_lp_norm(axis: int, p: int) -> None:
    check_node("LpNormalization", [normal(3, 4, 5)], axis=axis, p=p)


def test_mean_variance_norm() -> None:
    check_node("MeanVarianceNormalization", [normal(2, 3, 4, 5)], opset=13)
    check_node("MeanVarianceNormalization", [normal(2, 3, 4, 5)], opset=13, axes=(2, 3))


@for_each("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    check_node("LRN", [normal(2, 6, 3, 4)], size=size, alpha=0.1, beta=0.5, bias=2.0)


@for_each("op", ["Softmax", "LogSoftmax", "Hardmax"])
@for_each("axis", [None, 0, 1, 2, -1, -2])
@for_each("opset", [7, 11, 13])
def test_softmax(op: str, axis: int | None, opset: int) -> None:
    if opset < 11 and (axis or 0) < 0:
        return  # counted from the front only
    attributes = {} if axis is None else {"axis": axis}
    check_node(op, [normal(3, 4, 5)], opset=opset, **attributes)


def test_softmax_of_the_last_axis_needs_no_reshape() -> None:
    for opset, axis in ((11, 2), (11, -1), (13, -1)):
        graph = imported("Softmax", [normal(3, 4, 5)], opset=opset, axis=axis)
        assert [n.op for n in graph.nodes] == ["softmax"]


def test_refusals() -> None:
    x = normal(2, 6, 4)
    with pytest.raises(Error, match="training with spatial=0"):
        imported("BatchNormalization", [x, *statistics(6)], opset=7, spatial=0, outputs=5)
    with pytest.raises(Error, match="it has 3 outputs"):
        imported("BatchNormalization", [x, *statistics(6)], opset=14, outputs=3)
    with pytest.raises(Error, match="p is 3"):
        imported("LpNormalization", [x], p=3)
    with pytest.raises(Error, match="num_groups 4"):
        imported("GroupNormalization", [x, normal(4), normal(4)], opset=18, num_groups=4)
