"""Gradients of pooling against differences: overlapping windows, padding, sizes rounded up."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tilewright.core.errors import UnsupportedError
from tilewright.ops.conv.pool import AveragePoolAttrs, LpPoolAttrs, PoolAttrs, PoolIndicesAttrs
from tilewright.ops.interpret import run_graph

RNG = np.random.default_rng(7)
SHAPES = {"channels_first": (2, 2, 6, 5), "channels_last": (2, 6, 5, 2)}


def window(layout: str, ceil: bool = False) -> dict[str, object]:
    return {
        "strides": (2, 1),
        "pads": (1, 0, 0, 1),
        "dilations": (1, 2),
        "layout": layout,
        "kernel": (3, 2),
        "ceil": ceil,
    }


@for_each("ceil", [False, True])
@for_each("layout", list(SHAPES))
def test_pooling(layout: str, ceil: bool) -> None:
    x = RNG.uniform(-1, 1, SHAPES[layout])
    given = window(layout, ceil)
    check_rule("max_pool", x, attrs=PoolAttrs(**given))  # type: ignore[arg-type]
    for counted in (False, True):
        attrs = AveragePoolAttrs(**given, count_pads=counted)  # type: ignore[arg-type]
        check_rule("average_pool", x, attrs=attrs)
    for p in (1, 2, 3):
        check_rule("lp_pool", x, attrs=LpPoolAttrs(**given, p=p))  # type: ignore[arg-type]


def test_one_window() -> None:
    x = RNG.uniform(-1, 1, (2, 2, 4, 3))
    attrs = AveragePoolAttrs((1, 1), (0,) * 4, (1, 1), "channels_first", (4, 3))
    check_rule("average_pool", x, attrs=attrs)


def test_the_first_of_equal_elements() -> None:
    attrs = PoolAttrs((2,), (0, 0), (1,), "channels_first", (2,))
    x = np.zeros((1, 2, 4), np.float32)
    _, backward = gradient_graph("max_pool", (x,), attrs)
    given = {"x0": x, "d0": np.ones((1, 2, 2), np.float32)}
    check_native(backward, given)
    (dx,) = run_graph(backward, given).values()
    np.testing.assert_array_equal(dx, [[[1, 0, 1, 0]] * 2])


@for_each("op", ["max_pool", "average_pool"])
def test_natively(op: str) -> None:
    given = window("channels_first")
    kind = PoolAttrs if op == "max_pool" else AveragePoolAttrs
    attrs = kind(**given)  # type: ignore[arg-type]
    _, backward = gradient_graph(op, (np.zeros((2, 3, 7, 5), np.float32),), attrs)
    check_native(backward, random_inputs(backward, {}))


def test_indices_have_no_gradient() -> None:
    attrs = PoolIndicesAttrs((2,), (0, 0), (1,), "channels_first", (2,))
    _, backward = gradient_graph("max_pool_indices", (np.zeros((1, 2, 4)),), attrs)
    assert not backward.outputs


def test_sizes_that_must_be_known() -> None:
    x = np.zeros((1, 2, 5))
    attrs = AveragePoolAttrs((2,), (1, 0), (1,), "channels_first", (2,))
    with pytest.raises(UnsupportedError, match="average_pool with padding"):
        gradient_graph("average_pool", (x,), attrs, [(1, 2, "L")])
