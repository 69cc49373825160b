"""Quantised operators, against onnxruntime."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal

A, B = (RNG.integers(0, 256, (3, 4)).astype("u1") for _ in range(2))
W = RNG.integers(-128, 128, (4, 5)).astype("i1")


def _scale(value: float) -> np.ndarray:
    return np.array(value, "f4")


@for_each("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op: str) -> None:
    """Halves may be rounded otherwise where the order of multiplications differs."""
    zeros = [np.array(z, "u1") for z in (128, 100, 120)]
    inputs = [A, _scale(0.1), zeros[0], B, _scale(0.05), zeros[1], _scale(0.2), zeros[2]]
    check_ms(op, inputs, constants=(1, 2, 4, 5, 6, 7), atol=1)


def test_functions() -> None:
    inputs = [A, _scale(0.05), np.array(128, "u1"), _scale(0.004), np.array(0, "u1")]
    check_ms("QLinearSigmoid", inputs, constants=(1, 2, 3, 4), atol=1)


def test_products_scaled_to_floats() -> None:
    zeros = [np.array(128, "u1"), np.array(3, "i1")]
    inputs = [A, W, _scale(0.1), _scale(0.05), *zeros, normal(5)]
    check_ms("MatMulIntegerToFloat", inputs)
    columns = RNG.uniform(0.1, 1, 5).astype("f4")
    check_ms("MatMulIntegerToFloat", [A, W, _scale(0.1), columns, zeros[0]])


def test_products_of_floats_quantised_on_the_way() -> None:
    zero = np.array(3, "i1")
    check_ms("DynamicQuantizeMatMul", [normal(3, 4), W, _scale(0.05), zero, normal(5)])
    check_ms("DynamicQuantizeMatMul", [np.zeros((3, 4), "f4"), W, _scale(0.05)])


def test_images() -> None:
    x, other = (RNG.integers(0, 256, (2, k, 4, 4)).astype("u1") for k in (3, 5))
    zero, one = np.array(128, "u1"), np.array(100, "u1")
    inputs = [x, _scale(0.05), zero, _scale(0.04), one]
    check_ms("QLinearLeakyRelu", inputs, constants=(1, 2, 3, 4), alpha=0.1, atol=1)
    check_ms("QLinearGlobalAveragePool", inputs, constants=(1, 2, 3, 4), atol=1)
    joined = [_scale(0.05), one, x, _scale(0.05), zero, other, _scale(0.02), one]
    check_ms("QLinearConcat", joined, constants=(0, 1, 3, 4, 6, 7), axis=1, atol=1)


def test_quantisation_under_another_domain() -> None:
    zero = np.array(100, "u1")
    check_ms("QuantizeLinear", [normal(3, 4), _scale(0.05), zero])
    check_ms("DequantizeLinear", [A, _scale(0.05), zero])


def _bytes(*shape: int, dtype: str = "u1") -> np.ndarray:
    low = -128 if dtype == "i1" else 0
    return RNG.integers(low, low + 256, shape).astype(dtype)


@for_each("signed", [False, True])
def test_a_choice_between_two_quantizations(signed: bool) -> None:
    kind = "i1" if signed else "u1"
    condition = RNG.integers(0, 2, (5, 1)).astype(bool)
    zero = [np.array(z, kind) for z in (3, 7, 5)]
    parts = [_bytes(5, 7, dtype=kind), _scale(0.1), zero[0]]
    parts += [_bytes(1, 7, dtype=kind), _scale(0.05), zero[1]]
    inputs = [condition, *parts, _scale(0.08), zero[2]]
    check_ms("QLinearWhere", inputs, constants=(2, 3, 5, 6, 7, 8), atol=1)


@for_each(("opset", "axis"), [(13, -1), (13, 1), (11, 1), (11, 2)])
def test_softmax_of_bytes(opset: int, axis: int) -> None:
    zeros = np.array(100, "u1"), np.array(0, "u1")
    inputs = [_bytes(2, 3, 5), _scale(0.05), zeros[0], _scale(1 / 256), zeros[1]]
    check_ms("QLinearSoftmax", inputs, constants=(1, 2, 3, 4), opset_=opset, axis=axis, atol=1)


@for_each("last", [0, 1])
@for_each("counts", [0, 1])
def test_mean_pools_of_bytes(last: int, counts: int) -> None:
    x = _bytes(1, 7, 5, 3) if last else _bytes(1, 3, 7, 5)
    inputs = [x, _scale(0.05), np.array(100, "u1"), _scale(0.04), np.array(90, "u1")]
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    window |= {"count_include_pad": counts, "channels_last": last}
    check_ms("QLinearAveragePool", inputs, constants=(1, 2, 3, 4), atol=1, **window)


@for_each("columns", [False, True])
@for_each("floats", [False, True])
def test_gemm_of_bytes(columns: bool, floats: bool) -> None:
    scales = RNG.uniform(0.01, 0.1, 5).astype("f4") if columns else _scale(0.03)
    zeros = np.zeros(5, "i1") if columns else np.array(0, "i1")
    inputs = [_bytes(4, 3), _scale(0.02), np.array(120, "u1"), _bytes(5, 4, dtype="i1")]
    inputs += [scales, zeros, RNG.integers(-500, 500, 5).astype("i4")]
    inputs += [] if floats else [_scale(0.3), np.array(128, "u1")]
    attrs = {"transA": 1, "transB": 1, "alpha": 0.5}
    constants = tuple(i for i in range(1, len(inputs)))
    check_ms("QGemm", inputs, constants=constants, atol=1e-4 if floats else 1, **attrs)


@for_each("last", [0, 1])
def test_convolution_of_bytes(last: int) -> None:
    x = _bytes(1, 6, 5, 3) if last else _bytes(1, 3, 6, 5)
    weights, scales = _bytes(4, 3, 3, 2, dtype="i1"), RNG.uniform(0.01, 0.03, 4).astype("f4")
    inputs = [x, _scale(0.05), np.array(100, "u1"), weights, scales, np.zeros(4, "i1")]
    inputs += [_scale(1.5), np.array(110, "u1"), RNG.integers(-900, 900, 4).astype("i4")]
    attrs = {"pads": [1, 0, 1, 1], "strides": [2, 1], "channels_last": last}
    check_ms("QLinearConv", inputs, constants=tuple(range(1, 9)), atol=1, **attrs)


@for_each("columns", [False, True])
@for_each("mask", [None, np.array([3, 2], "i4"), np.array([[1, 1, 0]] * 2, "i4")])
def test_attention_of_bytes(columns: bool, mask: np.ndarray | None) -> None:
    scales = RNG.uniform(0.001, 0.01, 24).astype("f4") if columns else _scale(0.005)
    zeros = np.zeros(24, "i1") if columns else np.array(3, "i1")
    inputs = [_bytes(2, 3, 6), _bytes(6, 24, dtype="i1"), normal(24), _scale(0.02), scales]
    inputs += [mask, np.array(125, "u1"), zeros]
    check_ms("QAttention", inputs, constants=(1, 2, 3, 4, 6, 7), num_heads=2)


def test_attention_of_bytes_after_a_past() -> None:
    inputs = [_bytes(2, 3, 6), _bytes(6, 24, dtype="i1"), normal(24), _scale(0.02), _scale(0.005)]
    inputs += [None, np.array(125, "u1"), np.array(0, "i1"), normal(2, 2, 2, 5, 4)]
    constants = (1, 2, 3, 4, 6, 7)
    check_ms("QAttention", inputs, constants=constants, num_heads=2, unidirectional=1, outputs=2)


@for_each("segments", [False, True])
def test_embeddings_of_bytes(segments: bool) -> None:
    ids, kinds = RNG.integers(0, 9, (2, 5)).astype("i4"), RNG.integers(0, 2, (2, 5)).astype("i4")
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")
    inputs = [ids, kinds if segments else None, _bytes(9, 8), _bytes(7, 8)]
    inputs += [_bytes(2, 8) if segments else None, _bytes(8), _bytes(8), mask]
    scales = [_scale(s) for s in (0.1, 0.05, 0.02, 0.01, 0.03)]
    zeros = [np.array(z, "u1") for z in (128, 120, 110, 3, 100)]
    if not segments:
        scales[2] = zeros[2] = None
    inputs += [*scales, *zeros]
    check_ms("QEmbedLayerNormalization", inputs, outputs=2, constants=tuple(range(2, 7)))
