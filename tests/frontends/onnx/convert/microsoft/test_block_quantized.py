"""Weights of a few bits, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.for_each import for_each
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tilewright.core.errors import FrontendError, UnsupportedError


@for_each("bits", [2, 4, 8])
@for_each(("depth", "block"), [(32, 16), (40, 16), (64, 32)])
@for_each("zeros", ["none", "packed", "floats"])
def test_weights_of_a_few_bits(bits: int, depth: int, block: int, zeros: str) -> None:
    """A block's last byte and the last block may hold more than there is."""
    columns, blocks = 3, -(-depth // block)
    digits = RNG.integers(0, 1 << bits, (columns, blocks, block))
    scales = RNG.uniform(0.1, 1, columns * blocks).astype("f4")
    middle = np.full((columns, blocks), 1 << (bits - 1))
    points = middle if zeros == "none" else RNG.integers(0, 1 << bits, (columns, blocks))
    given = {"none": [], "packed": [_packed(points, bits)], "floats": [points.astype("f4")]}[zeros]
    x = normal(2, depth)
    inputs = [x, _packed(digits, bits), scales, *given]
    options = {"bits": bits, "block_size": block, "K": depth, "N": columns}
    (found,) = run_ms("MatMulNBits", inputs, constants=(1, 2, 3), **options)
    w = (digits - points[..., None]) * scales.reshape(columns, blocks, 1)
    expected = x @ w.reshape(columns, -1)[:, :depth].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def _packed(digits: np.ndarray, bits: int) -> np.ndarray:
    """Numbers side by side in bytes, the first in the lowest bits."""
    parts = 8 // bits
    rest = -digits.shape[-1] % parts
    wide = np.pad(digits, [(0, 0)] * (digits.ndim - 1) + [(0, rest)])
    groups = wide.reshape(*wide.shape[:-1], -1, parts) << (np.arange(parts) * bits)
    return groups.sum(-1).astype("u1")


def test_refusals() -> None:
    inputs = [normal(2, 16), np.zeros((3, 1, 8), "u1"), np.ones(3, "f4")]
    with pytest.raises(UnsupportedError, match="weights of 3 bits"):
        run_ms("MatMulNBits", inputs, bits=3, block_size=16, K=16, N=3)
    indices = [None, np.zeros(16, "i4")]
    with pytest.raises(UnsupportedError, match="g_idx"):
        run_ms("MatMulNBits", [*inputs, *indices], bits=4, block_size=16, K=16, N=3)


@for_each("kind", [0, 1])
@for_each(("depth", "columns", "block"), [(32, 5, 16), (17, 3, 32)])
def test_weights_that_number_the_values_of_a_table(
    kind: int, depth: int, columns: int, block: int
) -> None:
    """The last block, and the last byte, may hold less than others."""
    bytes_ = RNG.integers(0, 256, -(-depth * columns // 2)).astype("u1")
    scales = RNG.uniform(0.1, 1, -(-depth * columns // block)).astype("f4")
    inputs = [normal(2, 3, depth), bytes_, scales]
    options = {"quant_type": kind, "block_size": block, "K": depth, "N": columns}
    check_ms("MatMulBnb4", inputs, constants=(1, 2), **options)
    with pytest.raises(FrontendError, match="do not fit"):
        run_ms("MatMulBnb4", [inputs[0], bytes_[1:], scales], **options)


@for_each("zeros", [False, True])
@for_each("bits", [4, 8])
def test_slices_of_a_quantized_table(bits: int, zeros: bool) -> None:
    """An index outside of the table gives zeros, as the operator's definition says."""
    data = RNG.integers(0, 256, (6, 40 * bits // 8)).astype("u1")
    scales = RNG.uniform(0.1, 1, (6, 3)).astype("f4")
    points = [RNG.integers(0, 256, (6, -(-3 * bits // 8))).astype("u1")] if zeros else []
    indices = np.array([[0, 5, -1], [-6, 2, 1]], "i4")
    inputs = [data, indices, scales, *points]
    options = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    check_ms("GatherBlockQuantized", inputs, constants=(0, 2, 3), **options)
    (found,) = run_ms("GatherBlockQuantized", [data, np.array([6, -7, 0]), *inputs[2:]], **options)
    assert not found[:2].any()
    assert found[2].any()


@pytest.mark.parametrize("signed", [False, True])
def test_slices_of_a_table_of_4_bits(signed: bool) -> None:
    import onnxruntime

    import tilewright as tw

    kind = onnx.TensorProto.INT4 if signed else onnx.TensorProto.UINT4
    digits = RNG.integers(-8 if signed else 0, 8 if signed else 16, (32, 6))
    data = helper.make_tensor("data", kind, digits.shape, digits.reshape(-1))
    points = helper.make_tensor("zeros", kind, (2, 6), digits.reshape(-1)[:12])
    scales = numpy_helper.from_array(RNG.uniform(0.1, 1, (2, 6)).astype("f4"), "scales")
    options = {"block_size": 16, "quantize_axis": 0, "gather_axis": 1}
    node = helper.make_node(
        "GatherBlockQuantized",
        ["data", "indices", "scales", "zeros"],
        ["y"],
        domain="com.microsoft",
        **options,
    )
    graph = helper.make_graph(
        [node],
        "table",
        [helper.make_tensor_value_info("indices", onnx.TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [32, 3])],
        [data, scales, points],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    indices = np.array([5, 0, -2])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, {"indices": indices}
    )
    with tw.compile(model, threads=1, cache=False) as compiled:
        np.testing.assert_allclose(compiled(indices), expected[0], rtol=1e-6)
