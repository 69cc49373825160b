from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node
from tilewright.core.errors import Error

RNG = np.random.default_rng(23)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


WINDOWS = [
    ((1, 3, 8, 9), {"kernel_shape": (2, 2)}),
    ((2, 3, 8, 9), {"kernel_shape": (3, 2), "strides": (2, 3), "pads": (1, 0, 1, 1)}),
    ((1, 2, 9), {"kernel_shape": (4,), "strides": (3,), "auto_pad": "SAME_UPPER"}),
    ((1, 2, 9), {"kernel_shape": (4,), "strides": (3,), "auto_pad": "SAME_LOWER"}),
    ((1, 2, 9), {"kernel_shape": (2,), "strides": (2,), "auto_pad": "VALID"}),
    ((1, 2, 4, 5, 6), {"kernel_shape": (2, 3, 2), "strides": (2, 1, 2)}),
]
CEIL = [
    ((1, 3, 8, 7), {"kernel_shape": (3, 2), "strides": (2, 2), "ceil_mode": 1}),
    ((1, 3, 8, 7), {"kernel_shape": (3, 3), "strides": (2, 3), "pads": (1,) * 4, "ceil_mode": 1}),
]


@for_each("opset", [8, 12, 21])
@for_each(("shape", "attributes"), [*WINDOWS, *CEIL])
def test_max_pool(opset: int, shape: tuple[int, ...], attributes: dict) -> None:
    if opset < 10 and "ceil_mode" in attributes:
        return
    check_node("MaxPool", [normal(*shape)], opset=opset, **attributes)
    check_node("MaxPool", [normal(*shape)], opset=opset, outputs=2, **attributes)


@for_each("storage_order", [0, 1])
def test_max_pool_indices(storage_order: int) -> None:
    check_node(
        "MaxPool",
        [normal(2, 3, 6, 7)],
        outputs=2,
        kernel_shape=(3, 2),
        strides=(2, 2),
        dilations=(1, 2),
        storage_order=storage_order,
    )


@for_each("opset", [7, 10, 21])
@for_each("count", [0, 1])
@for_each(("shape", "attributes"), [*WINDOWS, *CEIL])
def test_average_pool(opset: int, count: int, shape: tuple[int, ...], attributes: dict) -> None:
    if opset < 10 and "ceil_mode" in attributes:
        return
    check_node("AveragePool", [normal(*shape)], opset=opset, count_include_pad=count, **attributes)


def test_dilated_average_pool() -> None:
    x = normal(1, 2, 9, 8)
    check_node("AveragePool", [x], kernel_shape=(3, 2), dilations=(2, 3), pads=(1, 1, 1, 1))


@for_each("p", [1, 2, 3])
@for_each("opset", [7, 11, 18])
def test_lp_pool(p: int, opset: int) -> None:
    check_node("LpPool", [normal(1, 2, 7, 8)], opset=opset, kernel_shape=(3, 2), p=p)


@for_each("shape", [(2, 3, 5, 4), (2, 3, 7), (1, 2, 3, 4, 5)])
@for_each("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op: str, shape: tuple[int, ...]) -> None:
    check_node(op, [normal(*shape)])
    x = normal(*shape)
    dims = {0: ["N", shape[1], *(f"D{i}" for i in range(len(shape) - 2))]}
    np.testing.assert_array_equal(run_node(op, [x], dims=dims)[0], run_node(op, [x])[0])


@for_each("p", [1, 2, 3])
def test_global_lp_pool(p: int) -> None:
    check_node("GlobalLpPool", [normal(2, 3, 5, 4)], p=p)


@for_each("shape", [None, (1, 2, 6, 8), (1, 2, 7, 9)])
def test_max_unpool(shape: tuple[int, ...] | None) -> None:
    window = {"kernel_shape": (2, 2), "strides": (2, 2)}
    y, indices = run_node("MaxPool", [normal(1, 2, 6, 8)], outputs=2, **window)
    size = [] if shape is None else [np.array(shape)]
    found = run_node("MaxUnpool", [y, indices, *size], constants=(2,), **window)[0]
    assert found.shape == (shape or (1, 2, 6, 8))
    inner = found[..., :6, :8]
    np.testing.assert_array_equal(inner.reshape(-1)[indices], y)
    assert np.count_nonzero(found) == y.size


def test_dynamic_sizes() -> None:
    x, kw = normal(2, 3, 8, 9), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    fixed = run_node("MaxPool", [x], **kw)[0]
    dynamic = run_node("MaxPool", [x], **kw, dims={0: ("N", "C", "H", "W")})[0]
    np.testing.assert_array_equal(fixed, dynamic)


def test_refusals() -> None:
    x = normal(1, 2, 7, 8)
    with pytest.raises(Error, match="kernel_shape is missing"):
        imported("MaxPool", [x])
    with pytest.raises(Error, match="do not fit 2 spatial"):
        imported("MaxPool", [x], kernel_shape=(2,))
    with pytest.raises(Error, match="do not fit f32"):
        imported("MaxUnpool", [x, np.zeros(x.shape, np.int64)], kernel_shape=(2,))
    with pytest.raises(Error, match="one element or more"):
        imported("MaxPool", [x], kernel_shape=(0, 2))
    with pytest.raises(Error, match="pad by less than a window"):
        imported("MaxPool", [x], kernel_shape=(2, 2), pads=(2, 2, 2, 2))
    with pytest.raises(Error, match="pad by less than a window"):
        imported("AveragePool", [x], kernel_shape=(2, 2), pads=(0, 0, 0, 3))
    imported("MaxPool", [x], kernel_shape=(2, 2), pads=(2, 2, 2, 2), dilations=(2, 2))
    with pytest.raises(Error, match="p is 0"):
        imported("GlobalLpPool", [x], p=0)
    with pytest.raises(Error, match="dynamic size"):
        imported(
            "MaxPool",
            [x],
            kernel_shape=(3, 3),
            strides=(2, 2),
            auto_pad="SAME_UPPER",
            dims={0: (1, 2, "H", "W")},
        )
