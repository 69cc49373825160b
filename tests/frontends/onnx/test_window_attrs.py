"""Window attributes: explicit, absent and automatic padding."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.errors import NOWHERE, FrontendError
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.window_attrs import read_window, split_padding


def node(**attributes: Any) -> OnnxNode:
    return OnnxNode(
        helper.make_node("Conv", ["x", "w"], ["y"], **attributes), ("x", "w"), NOWHERE, 21
    )


def sizes(*values: int) -> tuple[Expr, ...]:
    return tuple(const(v) for v in values)


def test_defaults() -> None:
    found = read_window(node(), sizes(5, 7), sizes(3, 3))
    assert (found.strides, found.dilations) == ((1, 1), (1, 1))
    assert found.static_pads == (0, 0, 0, 0)


def test_explicit() -> None:
    found = read_window(node(pads=(1, 2), strides=(2,), dilations=(3,)), sizes(9), sizes(2))
    assert (found.strides, found.static_pads, found.dilations) == ((2,), (1, 2), (3,))
    valid = read_window(node(pads=(1, 2), auto_pad="VALID"), sizes(9), sizes(2))
    assert valid.static_pads == (0, 0)


@for_each("kind", ["SAME_UPPER", "SAME_LOWER"])
@for_each("stride", [1, 2, 3])
@for_each("kernel", [1, 2, 3, 4])
@for_each("dilation", [1, 2])
def test_same(kind: str, stride: int, kernel: int, dilation: int) -> None:
    n = node(auto_pad=kind, strides=(stride,), dilations=(dilation,))
    dynamic = read_window(n, (Var("N"),), sizes(kernel))
    for size in range(1, 12):
        before, after = read_window(n, sizes(size), sizes(kernel)).static_pads or ()
        reach = (kernel - 1) * dilation + 1
        # Never less than what is needed for as many windows as strides begin in the input.
        assert (size + before + after - reach) // stride + 1 == -(-size // stride)
        assert 0 <= (after - before if kind == "SAME_UPPER" else before - after) <= 1
        assert [evaluate(p, {"N": size}) for p in dynamic.pads] == [before, after]
    assert (dynamic.static_pads is not None) == (stride == 1 or kernel == 1)


def test_split_padding() -> None:
    assert split_padding("SAME_UPPER", sizes(3, 4)) == sizes(1, 2, 2, 2)
    assert split_padding("SAME_LOWER", sizes(3, 4)) == sizes(2, 2, 1, 2)


def test_refusals() -> None:
    with pytest.raises(FrontendError, match="auto_pad is 'SAME'"):
        read_window(node(auto_pad="SAME"), sizes(5), sizes(3))
    with pytest.raises(FrontendError, match="do not fit 1 spatial"):
        read_window(node(pads=(1, 1, 1)), sizes(5), sizes(3))
