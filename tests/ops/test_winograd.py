"""Winograd's transforms: together they are a convolution."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.conv import ConvAttrs
from tilewright.ops.winograd import WinogradAttrs, transform_filter


@pytest.mark.parametrize(("height", "width", "pad"), [(4, 6, 1), (8, 4, 0), (2, 2, 1)])
def test_the_three_steps_are_a_convolution(height: int, width: int, pad: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, height, width, 3), dtype=np.float32)
    w = rng.standard_normal((5, 3, 3, 3), dtype=np.float32)
    expected = run_op("conv", x, w, attrs=ConvAttrs((1, 1), (pad,) * 4, (1, 1), "channels_last"))
    tiles = (expected.shape[1] // 2, expected.shape[2] // 2)
    attrs = WinogradAttrs(tiles, (pad, pad))
    v = run_op("winograd_input", x, attrs=attrs)
    assert v.shape == (4, 4, 2, *tiles, 3)
    m = np.einsum("ktc,kco->kto", v.reshape(16, -1, 3), transform_filter(w))
    y = run_op("winograd_output", m.reshape(4, 4, 2, *tiles, 5), attrs=attrs)
    np.testing.assert_allclose(y.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_filters_are_transformed_exactly_where_they_can_be() -> None:
    w = np.zeros((1, 1, 3, 3), np.float32)
    w[0, 0, 1, 1] = 4
    u = transform_filter(w).reshape(4, 4)
    np.testing.assert_array_equal(u, np.outer([0, 1, -1, 0], [0, 1, -1, 0]))


def test_only_images() -> None:
    with pytest.raises(TypeCheckError, match="no batch of images"):
        run_op("winograd_input", np.zeros((2, 3), np.float32), attrs=WinogradAttrs((1, 1), (0, 0)))
