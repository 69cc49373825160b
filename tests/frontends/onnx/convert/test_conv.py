from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, node_model, run_node
from tilewright.core.errors import Error

RNG = np.random.default_rng(22)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@for_each("opset", [7, 11, 21])
@for_each("bias", [False, True])
@for_each(
    ("x", "w", "attributes"),
    [
        ((1, 3, 7, 8), (4, 3, 3, 3), {}),
        ((2, 3, 7, 8), (4, 3, 3, 2), {"pads": (1, 0, 2, 1), "strides": (2, 3)}),
        ((1, 4, 7, 8), (6, 2, 3, 3), {"group": 2, "kernel_shape": (3, 3), "dilations": (2, 1)}),
        ((1, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "auto_pad": "VALID"}),
        ((1, 3, 9), (4, 3, 4), {"auto_pad": "SAME_UPPER", "strides": (2,)}),
        ((1, 3, 9), (4, 3, 4), {"auto_pad": "SAME_LOWER", "strides": (3,)}),
        ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"pads": (1, 1, 1, 0, 0, 0)}),
    ],
)
def test_conv(
    opset: int, bias: bool, x: tuple[int, ...], w: tuple[int, ...], attributes: dict
) -> None:
    inputs = [normal(*x), normal(*w), *([normal(w[0])] if bias else [])]
    check_node("Conv", inputs, opset=opset, constants=(1, 2), **attributes)


def test_bias_may_be_computed() -> None:
    check_node("Conv", [normal(1, 3, 5, 5), normal(4, 3, 3, 3), normal(4)])


def test_constant_bias_is_one_addition() -> None:
    inputs = [normal(1, 3, 5, 5), normal(4, 3, 3, 3), normal(4)]
    graph = imported("Conv", inputs, constants=(1, 2))
    assert [n.op for n in graph.nodes] == ["conv", "add"]


@for_each("strides", [(1, 1), (2, 3)])
@for_each("kind", ["SAME_UPPER", "SAME_LOWER"])
def test_automatic_padding_of_dynamic_sizes(strides: tuple[int, int], kind: str) -> None:
    kw = {"auto_pad": kind, "strides": strides, "constants": (1,)}
    w = normal(4, 3, 3, 2)
    for size in ((6, 7), (7, 9), (8, 5)):
        inputs = [normal(2, 3, *size), w]
        fixed = run_node("Conv", inputs, **kw)[0]
        dynamic = run_node("Conv", inputs, **kw, dims={0: ("N", 3, "H", "W")})[0]
        np.testing.assert_array_equal(fixed, dynamic)
    check_node("Conv", inputs, **kw)


@for_each("opset", [7, 11, 21])
@for_each(
    ("x", "w", "attributes"),
    [
        ((1, 3, 4, 5), (3, 2, 3, 3), {}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ((1, 3, 4, 5), (3, 2, 3, 2), {"strides": (3, 2), "output_padding": (1, 1)}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": (2, 2), "output_shape": (9, 10)}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": (2, 2), "auto_pad": "SAME_UPPER"}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": (2, 2), "auto_pad": "SAME_LOWER"}),
        ((1, 4, 5), (4, 3, 3), {"group": 2, "dilations": (2,)}),
    ],
)
def test_conv_transpose(
    opset: int, x: tuple[int, ...], w: tuple[int, ...], attributes: dict
) -> None:
    bias = normal(w[1] * attributes.get("group", 1))
    inputs = [normal(*x), normal(*w), bias]
    for constants in ((), (1, 2)):
        check_node("ConvTranspose", inputs, opset=opset, constants=constants, **attributes)


@for_each("strides", [(1, 1), (2, 2), (2, 3)])
@for_each("constants", [(), (1,)])
@for_each("which", [0, 1])
def test_conv_transpose_of_infinity(
    which: int, constants: tuple[int, ...], strides: tuple[int, int]
) -> None:
    inputs = [normal(1, 3, 4, 5), normal(3, 2, 3, 2)]
    inputs[which][0, 1, 1, 1] = np.inf
    kw = {"strides": strides, "pads": (1, 0, 1, 1), "constants": constants}
    check_node("ConvTranspose", inputs, **kw)


@for_each("attributes", [{"pads": (1, 1, 1, 1)}, {"auto_pad": "SAME_LOWER"}])
@for_each("constants", [(), (1,)])
def test_conv_transpose_of_dynamic_sizes(attributes: dict, constants: tuple[int, ...]) -> None:
    inputs = [normal(2, 3, 4, 5), normal(3, 2, 4, 3)]
    kw = {**attributes, "strides": (2, 2), "constants": constants}
    dynamic = run_node("ConvTranspose", inputs, dims={0: ("N", 3, "H", "W")}, **kw)[0]
    np.testing.assert_array_equal(dynamic, run_node("ConvTranspose", inputs, **kw)[0])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv(bias: bool, groups: int) -> None:
    x, w = normal(2, 4, 6, 5), normal(6, 4 // groups, 3, 2)
    offset, mask = normal(2, 2 * 12, 4, 4), normal(2, 2 * 6, 4, 4)
    inputs = [x, w, offset, normal(6) if bias else None, mask]
    kw = {"group": groups, "offset_group": 2, "opset": 19}
    model = node_model("DeformConv", inputs, **kw)
    given = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
    expected = ReferenceEvaluator(model).run(None, given)[0]
    found = run_node("DeformConv", inputs, **kw)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_undeformed_is_plain() -> None:
    x, w, offset = normal(1, 3, 6, 7), normal(4, 3, 3, 3), np.zeros((1, 18, 3, 4), np.float32)
    kw = {"pads": (1, 1, 1, 1), "strides": (2, 2), "opset": 19}
    found = run_node("DeformConv", [x, w, offset], **kw)[0]
    np.testing.assert_allclose(found, run_node("Conv", [x, w], **kw)[0], rtol=1e-4, atol=1e-5)


def test_refusals() -> None:
    x, w = normal(1, 3, 5, 5), normal(4, 3, 3, 3)
    with pytest.raises(Error, match="auto_pad"):
        imported("Conv", [x, w], auto_pad="SAME")
    with pytest.raises(Error, match="kernel_shape"):
        imported("Conv", [x, w], kernel_shape=(3, 2))
    with pytest.raises(Error, match="do not fit 2 spatial"):
        imported("Conv", [x, w], strides=(1,))
    with pytest.raises(Error, match="do not fit 3 input") as caught:
        imported("Conv", [x, normal(4, 2, 3, 3)])
    assert caught.value.loc.node == "node"
    with pytest.raises(Error, match=r"output_shape is \['0', '5'\]"):
        imported("ConvTranspose", [x, w], output_shape=(0, 5))
    with pytest.raises(Error, match="larger of stride and dilation"):
        imported("ConvTranspose", [x, w], output_padding=(2, 0), strides=(2, 2))
    imported("ConvTranspose", [x, normal(3, 4, 3, 3)], output_padding=(1, 0), strides=(2, 2))
    with pytest.raises(Error, match="dynamic size"):
        imported(
            "ConvTranspose",
            [normal(1, 4, 5, 5), w],
            strides=(2, 2),
            auto_pad="SAME_UPPER",
            dims={0: (1, 4, "H", "W")},
            output_shape=(9, 9),
        )
