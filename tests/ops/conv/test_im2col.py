"""Windows as rows: their product with the filters is the convolution."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.im2col import Im2ColAttrs


@for_each(
    ("strides", "pads", "dilations"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1)),
        ((2, 1), (1, 0, 2, 1), (1, 1)),
        ((1, 3), (1, 1, 1, 1), (2, 1)),
    ],
)
@for_each("more", [0, 5])
def test_a_product_with_the_filters_is_a_convolution(
    strides: tuple[int, int], pads: tuple[int, ...], dilations: tuple[int, int], more: int
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 7, 3), dtype=np.float32)
    w = rng.standard_normal((5, 3, 3, 2), dtype=np.float32)
    where = (strides, pads, dilations, "channels_last")
    expected = run_op("conv", x, w, attrs=ConvAttrs(*where))
    rows = run_op("im2col", x, attrs=Im2ColAttrs(*where, (3, 2), 18 + more))
    assert rows.shape == (*expected.shape[:-1], 18 + more)
    assert not rows[..., 18:].any()
    filters = w.transpose(2, 3, 1, 0).reshape(18, 5)
    np.testing.assert_allclose(rows[..., :18] @ filters, expected, rtol=1e-5, atol=1e-5)


def test_rows_must_hold_a_window() -> None:
    where = ((1, 1), (0, 0, 0, 0), (1, 1), "channels_last")
    with pytest.raises(TypeCheckError, match="are not 17"):
        run_op(
            "im2col",
            np.zeros((1, 4, 4, 3), np.float32),
            attrs=Im2ColAttrs(*where, (3, 2), 17),
        )


def test_each_line_may_be_filled_up() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 7, 3), dtype=np.float32)
    where = ((2, 1), (1, 0, 2, 1), (1, 1), "channels_last")
    plain = run_op("im2col", x, attrs=Im2ColAttrs(*where, (3, 2), 18))
    lines = run_op("im2col", x, attrs=Im2ColAttrs(*where, (3, 2), 24, 8))
    lines = lines.reshape(*lines.shape[:-1], 3, 8)
    np.testing.assert_array_equal(lines[..., :6], plain.reshape(*plain.shape[:-1], 3, 6))
    assert not lines[..., 6:].any()
    with pytest.raises(TypeCheckError, match="has not 5 elements"):
        run_op("im2col", x, attrs=Im2ColAttrs(*where, (3, 2), 18, 5))
