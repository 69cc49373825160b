"""Winograd's transforms: together they are a convolution, in one dimension or two."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.winograd import WinogradAttrs, transform_filter
from tilewright.ops.registry import get_op

# Output tile, window, image size, padding.
CASES = [
    ((2, 2), (3, 3), (4, 6), 1),
    ((4, 4), (3, 3), (8, 4), 0),
    ((4, 4), (3, 3), (7, 5), 1),
    ((4, 2), (3, 3), (2, 2), 1),
    ((5, 3), (3, 3), (9, 11), 2),
    ((2, 2), (5, 3), (6, 7), 1),
    ((1, 4), (1, 3), (3, 9), 0),
    ((4,), (5,), (13,), 2),
    ((2,), (7,), (9,), 0),
    ((6,), (3,), (1,), 1),
]


@for_each(("tile", "window", "size", "pad"), CASES)
def test_the_three_steps_are_a_convolution(
    tile: tuple[int, ...], window: tuple[int, ...], size: tuple[int, ...], pad: int
) -> None:
    rng = np.random.default_rng(0)
    rank = len(tile)
    x = rng.standard_normal((2, *size, 3), dtype=np.float32)
    w = rng.standard_normal((5, 3, *window), dtype=np.float32)
    ones = (1,) * rank
    expected = run_op("conv", x, w, attrs=ConvAttrs(ones, (pad,) * 2 * rank, ones, "channels_last"))
    out = tuple(map(const, expected.shape[1:-1]))
    attrs = WinogradAttrs(tile, window, (pad,) * rank, out)
    v = run_op("winograd_input", x, attrs=attrs)
    tiles = tuple(-(-n // m) for n, m in zip(expected.shape[1:-1], tile, strict=True))
    assert v.shape == (*attrs.points, 2, *tiles, 3)
    points = prod(attrs.points)
    m = np.einsum("ktc,kco->kto", v.reshape(points, -1, 3), transform_filter(w, tile))
    y = run_op("winograd_output", m.reshape(*v.shape[:-1], 5), attrs=attrs)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=3e-5)


def test_filters_are_transformed_exactly_where_they_can_be() -> None:
    w = np.zeros((1, 1, 3, 3), np.float32)
    w[0, 0, 1, 1] = 4
    u = transform_filter(w, (2, 2)).reshape(4, 4)
    np.testing.assert_array_equal(u, np.outer([0, 1, -1, 0], [0, 1, -1, 0]))


def test_arithmetic_is_counted_by_tiles() -> None:
    attrs = WinogradAttrs((4, 4), (3, 3), (1, 1), (const(8), const(8)))
    row = get_op("winograd_input")
    ins = [tensor(F32, 1, 8, 8, 4)]
    assert row.cost(attrs, ins, [row.infer(attrs, ins)]) is const(4 * 4 * (12 * 6 + 12 * 6))


def test_only_images() -> None:
    attrs = WinogradAttrs((2, 2), (3, 3), (0, 0), (const(1), const(1)))
    with pytest.raises(TypeCheckError, match="no batch of images"):
        run_op("winograd_input", np.zeros((2, 3), np.float32), attrs=attrs)
    with pytest.raises(TypeCheckError, match="no transformed tiles"):
        run_op("winograd_output", np.zeros((2, 3), np.float32), attrs=attrs)
