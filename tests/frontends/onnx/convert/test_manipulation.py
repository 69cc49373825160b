from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.arith.expr import Var, const
from tilewright.core.errors import FrontendError, TypeCheckError, UnsupportedError
from tilewright.frontends.onnx.convert.manipulation import quotient
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ops.interpret import run_graph

RNG = np.random.default_rng(0)
N, S = Var("N"), Var("S")


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@for_each(
    ("old", "shape"),
    [((2, 3, 4), [0, -1]), ((2, 3, 4), [4, 0, -1]), ((2, 3), [-1]), ((0, 3), [0, 3]), ((), [1])],
)
def test_reshape(old: tuple[int, ...], shape: list[int]) -> None:
    check("Reshape", {"x": random(*old)}, {"shape": np.array(shape)})


def test_reshape_to_nothing() -> None:
    x = random(0, 3)
    check("Reshape", {"x": x}, {"shape": np.array([3, 0])}, allowzero=1)


@for_each(("shape", "allowzero"), [([-1, -1], 0), ([0, 0, 0, 1], 0), ([-1, 0], 1), ([-1, 0], 0)])
def test_reshape_refuses_shapes_that_mean_nothing(shape: list[int], allowzero: int) -> None:
    with pytest.raises(FrontendError):
        imported("Reshape", {"x": random(2, 0)}, {"shape": np.array(shape)}, allowzero=allowzero)


def test_reshape_infers_a_symbolic_dimension() -> None:
    dims = {"x": ("N", "S", 768)}
    shape = {"shape": np.array([0, -1, 12, 64])}
    graph = imported("Reshape", {"x": random(2, 3, 768)}, shape, dims=dims)
    assert graph.types["y"].shape == (N, S, const(12), const(64))


def test_reshape_needs_a_known_shape() -> None:
    with pytest.raises(UnsupportedError, match="known only when the model runs"):
        imported("Reshape", {"x": random(2, 3), "shape": np.array([6])})


@for_each(
    ("dims", "divisors", "expected"),
    [
        ((N, const(12), S, const(64)), (S, const(64)), "N * 12"),
        ((N * S, const(768)), (N, const(12)), "S * 64"),
        ((const(6),), (const(4),), "1"),
        ((N, const(6)), (const(4),), "N + N // 2"),
        ((N,), (S,), "N // S"),
        ((const(0), const(5)), (const(5),), "0"),
        ((), (), "1"),
    ],
)
def test_quotient(dims: tuple, divisors: tuple, expected: str) -> None:
    assert str(quotient(dims, divisors)) == expected


@for_each("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    check("Flatten", {"x": random(2, 3, 4)}, axis=axis)


@for_each("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    x = random(1, 3, 1, 2)
    given = {"axes": [0, -2]} if opset < 13 else {}
    axes = {} if opset < 13 else {"axes": np.array([0, -2])}
    (squeezed,) = results("Squeeze", {"x": x}, axes, opset=opset, **given)
    np.testing.assert_array_equal(squeezed, x[0, :, 0])
    (back,) = results("Unsqueeze", {"x": squeezed}, axes, opset=opset, **given)
    np.testing.assert_array_equal(back, x)


def test_squeeze_of_all_ones() -> None:
    check("Squeeze", {"x": random(1, 3, 1)})
    with pytest.raises(FrontendError, match="is not 1"):
        imported("Squeeze", {"x": random(1, 3)}, {"axes": np.array([1])})


def test_unsqueeze_refuses_an_axis_given_twice() -> None:
    with pytest.raises(FrontendError, match="twice"):
        imported("Unsqueeze", {"x": random(3)}, {"axes": np.array([0, -3])})


@for_each("perm", [None, [0, 1, 2], [1, 2, 0]])
def test_transpose(perm: list[int] | None) -> None:
    check("Transpose", {"x": random(2, 3, 4)}, **({} if perm is None else {"perm": perm}))


@for_each("shape", [[2, 3, 4], [3, 1], [1], [], [0, 3, 1]])
def test_expand(shape: list[int]) -> None:
    check("Expand", {"x": random(3, 1)}, {"shape": np.array(shape, np.int64)})


def test_expand_refuses_other_dimensions() -> None:
    with pytest.raises(TypeCheckError, match="do not broadcast"):
        imported("Expand", {"x": random(3, 1)}, {"shape": np.array([2, 1])})


def test_tile() -> None:
    check("Tile", {"x": random(3, 1)}, {"repeats": np.array([2, 3])})


@for_each("upper", [0, 1])
def test_trilu(upper: int) -> None:
    x, k = random(2, 3, 4), np.array(1)
    check("Trilu", {"x": x}, upper=upper)
    check("Trilu", {"x": x}, {"k": k}, upper=upper)
    check("Trilu", {"x": x, "k": k}, upper=upper)


@for_each("mode", ["DCR", "CRD"])
def test_depth_and_space(mode: str) -> None:
    check("DepthToSpace", {"x": random(1, 8, 2, 3)}, blocksize=2, mode=mode)
    check("SpaceToDepth", {"x": random(1, 2, 4, 6)}, blocksize=2)


def test_shape_arithmetic_of_exporters() -> None:
    """`x.expand(N, -1, 5)` and `x.view(N, -1)` as PyTorch writes them leave no shape arithmetic."""
    made = helper.make_node
    nodes = [
        made("Shape", ["x"], ["shape"]),
        made("Gather", ["shape", "zero"], ["n"], axis=0),
        made("Unsqueeze", ["n", "axes"], ["n1"]),
        made("Concat", ["n1", "minus", "five"], ["wanted"], axis=0),
        made("Shape", ["wanted"], ["rank"]),
        made("ConstantOfShape", ["rank"], ["ones"], value=helper.make_tensor("v", 7, [1], [1])),
        made("Mul", ["ones", "minus"], ["all_minus"]),
        made("Equal", ["wanted", "all_minus"], ["open"]),
        made("Where", ["open", "ones", "wanted"], ["target"]),
        made("Expand", ["x", "target"], ["wide"]),
        made("Concat", ["n1", "minus"], ["flat"], axis=0),
        made("Reshape", ["wide", "flat"], ["y"]),
    ]
    numbers = {"zero": 0, "axes": [0], "minus": [-1], "five": [5]}
    stored = [numpy_helper.from_array(np.array(v), name) for name, v in numbers.items()]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 3, 1])]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, stored),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    graph = import_onnx(model)
    assert str(graph.types["y"]) == "f32[N, 15]"
    x = random(2, 3, 1)
    expected = np.broadcast_to(x, (2, 3, 5)).reshape(2, 15)
    np.testing.assert_array_equal(run_graph(graph, {"x": x})["y"], expected)


def test_col2im() -> None:
    x = np.random.default_rng(0).standard_normal((2, 12, 6)).astype("f4")
    shapes = {"image": np.array([5, 7]), "block": np.array([2, 3])}
    options = {"strides": [2, 3], "pads": [0, 1, 1, 1], "dilations": [2, 1]}
    check("Col2Im", {"x": x[:, :, : 2 * 3]}, shapes, **options)
    with pytest.raises(UnsupportedError, match="known only when"):
        imported("Col2Im", {"x": x, **shapes})
