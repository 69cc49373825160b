"""Transposed convolutions by phases against their direct form."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.ops.conv import ConvTransposeAttrs
from tilewright.ops.conv_phases import convolve_phases, phase_weights
from tilewright.ops.evaluate import run_graph

RNG = np.random.default_rng(14)

# Input and weight shapes, then strides, pads, groups, output padding.
CASES = {
    "no overlap": ((2, 3, 4, 5), (3, 2, 2, 2), (2, 2), (0, 0, 0, 0), 1, (0, 0)),
    "upsampling": ((1, 3, 4, 5), (3, 2, 4, 4), (2, 2), (1, 1, 1, 1), 1, (0, 0)),
    "odd kernel": ((1, 3, 4, 5), (3, 2, 3, 3), (2, 2), (1, 1, 1, 1), 1, (1, 0)),
    "kernel below stride": ((1, 2, 3, 4), (2, 2, 2, 1), (3, 2), (0, 0, 0, 0), 1, (0, 0)),
    "one axis strided": ((1, 2, 3, 4), (2, 2, 3, 3), (1, 2), (1, 0, 0, 2), 1, (0, 1)),
    "grouped": ((1, 6, 3, 3), (6, 2, 3, 4), (2, 3), (1, 0, 1, 1), 3, (1, 1)),
    "depthwise": ((1, 4, 3, 3), (4, 1, 4, 4), (2, 2), (1, 1, 1, 1), 4, (0, 0)),
    "large pads": ((1, 2, 6), (2, 1, 7), (2,), (5, 4), 1, (1,)),
    "1d": ((2, 2, 5), (2, 3, 4), (3,), (1, 2), 1, (2,)),
    "3d": ((1, 2, 2, 3, 2), (2, 1, 2, 2, 3), (2, 1, 2), (0, 1, 1, 1, 0, 0), 1, (1, 0, 0)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_same_as_direct(case: tuple) -> None:
    x_shape, w_shape, strides, pads, groups, output_padding = case
    attrs = ConvTransposeAttrs(
        strides, pads, (1,) * len(strides), groups=groups, output_padding=output_padding
    )
    g = GraphBuilder("test")
    x = g.input("x", tensor(F32, *x_shape))
    w = g.constant(RNG.standard_normal(w_shape).astype(np.float32), "w")
    found = convolve_phases(g, attrs, x, w)
    assert found is not None
    assert "conv_transpose" not in [n.op for n in g.nodes]
    direct = g.add("conv_transpose", x, w, attrs=attrs)
    assert g.type(found) == g.type(direct)
    given = {"x": RNG.standard_normal(x_shape).astype(np.float32)}
    results = run_graph(g.graph(found, direct), given)
    np.testing.assert_allclose(results[found], results[direct], rtol=1e-5, atol=1e-5)


def test_whole_kernels_are_views_of_one_product() -> None:
    g = GraphBuilder("test")
    x, w = g.input("x", tensor(F32, 1, 3, 4)), g.constant(np.ones((3, 2, 2), np.float32), "w")
    convolve_phases(g, ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,)), x, w)
    assert [n.op for n in g.nodes] == ["conv", "reshape", "transpose", "reshape"]


def test_phase_weights() -> None:
    attrs = ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,))
    found = phase_weights(np.array([[[1, 2, 3]]], np.float32), attrs)
    np.testing.assert_array_equal(found, [[[3, 1]], [[0, 2]]])


@pytest.mark.parametrize(
    "attrs",
    [
        ConvTransposeAttrs((1,), (0, 0), (1,), output_padding=(0,)),
        ConvTransposeAttrs((2,), (0, 0), (2,), output_padding=(0,)),
        ConvTransposeAttrs((2,), (4, 0), (1,), output_padding=(0,)),
        ConvTransposeAttrs((2,), (0, 0), (1,), "channels_last", output_padding=(0,)),
    ],
)
def test_where_it_does_not_apply(attrs: ConvTransposeAttrs) -> None:
    g = GraphBuilder("test")
    x, w = g.input("x", tensor(F32, 1, 3, 3)), g.constant(np.ones((3, 2, 3), np.float32), "w")
    assert convolve_phases(g, attrs, x, w) is None
    computed = g.input("weights", tensor(F32, 3, 2, 3))
    plain = ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,))
    assert convolve_phases(g, plain, x, computed) is None
    assert not g.nodes
