"""Convolutions with the groups as an axis, against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(11)


@for_each(("groups", "inside", "outside"), [(2, 3, 2), (3, 1, 4), (1, 4, 5)])
@for_each(("stride", "pad", "dilation"), [(1, 1, 1), (2, 0, 1), (1, 2, 2)])
def test_as_a_plain_convolution(groups, inside, outside, stride, pad, dilation):
    x = RNG.standard_normal((2, 7, 6, groups, inside)).astype(np.float32)
    w = RNG.standard_normal((groups, outside, inside, 3, 3)).astype(np.float32)
    attrs = WindowAttrs(
        (stride, stride, 1), (pad, pad, 0) * 2, (dilation, dilation, 1), "channels_last"
    )
    found = run_op("group_conv", x, w, attrs=attrs)
    plain = ConvAttrs((stride,) * 2, (pad,) * 4, (dilation,) * 2, "channels_last", groups)
    flat = x.reshape(2, 7, 6, groups * inside), w.reshape(groups * outside, inside, 3, 3)
    expected = run_op("conv", *flat, attrs=plain)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("groups", "inside", "outside"), [(2, 3, 2), (3, 1, 4), (1, 4, 5)])
@pytest.mark.parametrize(("stride", "pad", "dilation"), [(1, 1, 1), (2, 0, 1), (1, 2, 2)])
def test_channels_first(groups, inside, outside, stride, pad, dilation):
    x = RNG.standard_normal((2, groups * inside, 7, 6)).astype(np.float32)
    w = RNG.standard_normal((groups, outside, inside, 3, 3)).astype(np.float32)
    window = (stride,) * 2, (pad,) * 4, (dilation,) * 2, "channels_first"
    found = run_op("group_conv", x, w, attrs=WindowAttrs(*window))
    flat = w.reshape(groups * outside, inside, 3, 3)
    expected = run_op("conv", x, flat, attrs=ConvAttrs(*window, groups))
    assert found.shape[1:3] == (groups, outside)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6)


@for_each(
    ("data", "weights", "window"),
    [
        ((1, 5, 5, 2, 3), (2, 4, 2, 3, 3), ((1, 1, 1), (0,) * 6, (1, 1, 1))),
        ((1, 5, 5, 2, 3), (3, 4, 3, 3, 3), ((1, 1, 1), (0,) * 6, (1, 1, 1))),
        ((1, 5, 5, 2, 3), (2, 4, 3, 3, 3), ((1, 1, 2), (0,) * 6, (1, 1, 1))),
        ((1, 5, 5, 2, 3), (2, 4, 3, 3, 3), ((1, 1, 1), (0, 0, 1, 0, 0, 0), (1, 1, 1))),
    ],
)
def test_what_does_not_fit_is_refused(data, weights, window):
    attrs = WindowAttrs(*window, "channels_last")
    with pytest.raises(TypeCheckError):
        get_op("group_conv").infer(attrs, [tensor(F32, *data), tensor(F32, *weights)])


def test_channels_first_that_do_not_fit_are_refused():
    attrs = WindowAttrs((1, 1), (0,) * 4, (1, 1), "channels_first")
    with pytest.raises(TypeCheckError, match="do not fit the channels"):
        get_op("group_conv").infer(attrs, [tensor(F32, 1, 5, 5, 5), tensor(F32, 2, 4, 3, 3, 3)])
