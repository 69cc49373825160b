"""Transposed convolutions by phases against their definition."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.polyphase import Phases, convolve_phases, phase_weights, split_phases
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph

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


@for_each("case", CASES.values(), ids=CASES)
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
    data = RNG.standard_normal(x_shape).astype(np.float32)
    for value in (0.5, np.inf):  # an infinite element reaches only what its taps reach
        data.reshape(-1)[data.size // 2] = value
        results = run_graph(g.graph(found, direct), {"x": data})
        np.testing.assert_allclose(results[found], results[direct], rtol=1e-5, atol=1e-5)


def test_whole_kernels_are_views_of_one_product() -> None:
    g = GraphBuilder("test")
    x, w = g.input("x", tensor(F32, 1, 3, 4)), g.constant(np.ones((3, 2, 2), np.float32), "w")
    convolve_phases(g, ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,)), x, w)
    assert [n.op for n in g.nodes] == ["conv", "reshape", "transpose", "reshape"]


def test_a_stride_of_one_is_a_convolution_backwards() -> None:
    g = GraphBuilder("test")
    x, w = g.input("x", tensor(F32, 1, 3, 4)), g.constant(np.ones((3, 2, 2), np.float32), "w")
    convolve_phases(g, ConvTransposeAttrs((1,), (0, 0), (3,), output_padding=(0,)), x, w)
    assert g.nodes[0].attrs == ConvAttrs((1,), (3, 3), (3,))
    assert {n.op for n in g.nodes[1:]} <= {"reshape", "transpose"}


def test_phases() -> None:
    assert split_phases(4, 2) == (Phases(0, 2, 2),)
    assert split_phases(3, 2) == (Phases(0, 1, 2), Phases(1, 1, 1))
    assert split_phases(2, 3) == (Phases(0, 2, 1), Phases(2, 1, 0))


def test_phase_weights() -> None:
    attrs = ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,))
    weights = np.array([[[1, 2, 3, 4, 5]]], np.float32)
    longer, shorter = split_phases(5, 2)
    np.testing.assert_array_equal(phase_weights(weights, attrs, [longer]), [[[5, 3, 1]]])
    np.testing.assert_array_equal(phase_weights(weights, attrs, [shorter]), [[[4, 2]]])
    whole = phase_weights(weights[..., :4], attrs, split_phases(4, 2))
    np.testing.assert_array_equal(whole, [[[3, 1]], [[4, 2]]])


@for_each("value", [np.inf, np.nan])
def test_weights_that_are_not_finite(value: float) -> None:
    g = GraphBuilder("test")
    w = g.constant(np.full((3, 2, 2), value, np.float32), "w")
    attrs = ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,))
    assert convolve_phases(g, attrs, g.input("x", tensor(F32, 1, 3, 4)), w) is None


@for_each(
    "attrs",
    [
        ConvTransposeAttrs((2,), (0, 0), (2,), output_padding=(0,)),
        ConvTransposeAttrs((2,), (4, 0), (1,), output_padding=(0,)),
        ConvTransposeAttrs((2,), (2, 0), (1,), output_padding=(0,)),
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
