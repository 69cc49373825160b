from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node

RNG = np.random.default_rng(21)


def integers(dtype: type, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


@for_each("w_type", [np.int8, np.uint8])
@for_each("constants", [(), (1, 2, 3)])
def test_matmul_integer(w_type: type, constants: tuple[int, ...]) -> None:
    x, w = integers(np.uint8, 3, 40), integers(w_type, 40, 5)
    zero = [np.array(77, np.uint8), np.array(3, w_type)]
    check_node("MatMulInteger", [x, w], constants=constants[:1])
    check_node("MatMulInteger", [x, w, zero[0]], constants=constants[:2])
    check_node("MatMulInteger", [x, w, *zero], constants=constants)


def test_zero_points_of_rows_and_columns() -> None:
    x, w = integers(np.int8, 2, 3, 7), integers(np.uint8, 7, 5)
    x0, w0 = integers(np.int8, 3), integers(np.uint8, 5)
    wide = x.astype(np.int32) - x0.astype(np.int32)[:, None]
    expected = wide @ (w.astype(np.int32) - w0.astype(np.int32))
    np.testing.assert_array_equal(run_node("MatMulInteger", [x, w, x0, w0])[0], expected)


def test_vectors() -> None:
    x, w = integers(np.uint8, 7), integers(np.uint8, 7, 2)
    expected = (x.astype(np.int32) - 9) @ w.astype(np.int32)
    found = run_node("MatMulInteger", [x, w, np.array(9, np.uint8)])
    np.testing.assert_array_equal(found[0], expected)


def test_zeros_cost_nothing() -> None:
    inputs = [integers(np.uint8, 3, 4), integers(np.int8, 4, 5)]
    zeros = [np.array(0, np.uint8), np.array(0, np.int8)]
    graph = imported("MatMulInteger", [*inputs, *zeros], constants=(2, 3))
    assert [n.op for n in graph.nodes if n.outputs[0] in graph.outputs] == ["matmul_i32acc"]


@for_each("pads", [(0, 0, 0, 0), (1, 0, 1, 2)])
@for_each("groups", [1, 2])
def test_conv_integer(pads: tuple[int, ...], groups: int) -> None:
    x, w = integers(np.uint8, 1, 4, 5, 6), integers(np.uint8, 4, 4 // groups, 3, 3)
    zeros = [np.array(100, np.uint8), np.array(7, np.uint8)]
    check_node("ConvInteger", [x, w, *zeros], pads=pads, group=groups)
    check_node("ConvInteger", [x, w], pads=pads, group=groups)


def test_zero_point_of_an_output_channel() -> None:
    x, w, w0 = integers(np.uint8, 1, 2, 6), integers(np.int8, 3, 2, 2), integers(np.int8, 3)
    found = run_node("ConvInteger", [x, w, np.array(0, np.uint8), w0])[0]
    wide = w.astype(np.int32) - w0.astype(np.int32)[:, None, None]
    windows = np.stack([x[0, :, p : p + 2] for p in range(5)]).astype(np.int32)
    np.testing.assert_array_equal(found[0], np.einsum("pck,ock->op", windows, wide))


def scale(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


@for_each("dtype", [np.uint8, np.int8])
def test_qlinear_matmul(dtype: type) -> None:
    x, w = integers(dtype, 3, 40), integers(dtype, 40, 5)
    zeros = [np.array(z, dtype) for z in (12, 5, 9)]
    inputs = [x, scale(0.02), zeros[0], w, scale(0.03), zeros[1], scale(0.4), zeros[2]]
    check_node("QLinearMatMul", inputs, atol=0, rtol=0)


@for_each("bias", [False, True])
@for_each("scales", [(0.03,), (0.01, 0.02, 0.03)])
def test_qlinear_conv(bias: bool, scales: tuple[float, ...]) -> None:
    x, w = integers(np.uint8, 1, 2, 6, 5), integers(np.int8, 3, 2, 3, 3)
    w_zero = np.zeros(len(scales), np.int8) if len(scales) > 1 else np.array(0, np.int8)
    inputs = [
        *(x, scale(0.02), np.array(12, np.uint8)),
        *(w, scale(*scales), w_zero),
        *(scale(0.4), np.array(128, np.uint8)),
        *([RNG.integers(-500, 500, 3).astype(np.int32)] if bias else []),
    ]
    check_node("QLinearConv", inputs, pads=(1, 1, 1, 1), atol=1, rtol=0, constants=range(1, 9))
