"""Gradients of convolutions against differences; compiled ones against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tests.ops.run_op import exprs
from tilewright.core.errors import UnsupportedError
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.im2col import Im2ColAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs
from tilewright.ops.conv.winograd import WinogradAttrs

RNG = np.random.default_rng(6)
LAST = "channels_last"


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


CONVOLUTIONS = [
    ((2, 4, 5, 6), (6, 2, 3, 2), ConvAttrs((1, 1), (1, 0, 1, 1), (1, 1), groups=2)),
    ((2, 3, 7, 6), (4, 3, 3, 2), ConvAttrs((2, 3), (1, 0, 0, 1), (2, 1))),
    ((2, 7, 3), (4, 3, 3), ConvAttrs((2,), (1, 1), (1,), LAST)),
    ((1, 5, 3), (4, 3, 1), ConvAttrs((1,), (0, 0), (1,), LAST)),
    ((1, 5, 3), (4, 3, 1), ConvAttrs((2,), (0, 0), (1,), LAST)),
    ((1, 5, 4), (3, 5, 2), ConvAttrs((1,), (3, 2), (1,))),
    ((1, 4, 5, 5), (4, 1, 3, 3), ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), groups=4)),
    ((0, 2, 4), (3, 2, 2), ConvAttrs((1,), (0, 0), (1,))),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), ConvAttrs((1, 2, 1), (0,) * 6, (1, 1, 1))),
]


@for_each("x, w, attrs", CONVOLUTIONS)
def test_convolution(x: tuple[int, ...], w: tuple[int, ...], attrs: ConvAttrs) -> None:
    check_rule("conv", random(*x), random(*w), attrs=attrs)


@for_each("x, w, attrs", CONVOLUTIONS[:3])
def test_natively(x: tuple[int, ...], w: tuple[int, ...], attrs: ConvAttrs) -> None:
    operands = (np.zeros(x, np.float32), np.zeros(w, np.float32))
    _, backward = gradient_graph("conv", operands, attrs)
    check_native(backward, random_inputs(backward, {}), scale=2)


def test_symbolic_sizes() -> None:
    attrs = ConvAttrs((2,), (1, 1), (1,))
    check_rule("conv", random(2, 3, 7), random(4, 3, 3), attrs=attrs, dims=[("N", 3, "L")])
    check_rule(
        "conv", random(2, 3, 7), random(4, 3, 3), attrs=attrs, dims=[(2, "C", 7), (4, "C", 3)]
    )


def test_a_kernel_of_unknown_size() -> None:
    attrs = ConvAttrs((2,), (1, 1), (1,))
    with pytest.raises(UnsupportedError, match="the gradient of conv with a kernel of"):
        gradient_graph("conv", (random(2, 3, 7), random(4, 3, 3)), attrs, [(2, 3, 7), (4, 3, "K")])


@for_each(
    "x, w, attrs",
    [
        (
            (2, 4, 3, 4),
            (4, 3, 3, 2),
            ConvTransposeAttrs((2, 1), (1, 0, 0, 1), (1, 2), groups=2, output_padding=(1, 0)),
        ),
        ((2, 3, 4), (4, 3, 3), ConvTransposeAttrs((2,), (1, 1), (1,), LAST, output_padding=(3,))),
    ],
)
def test_transposed(x: tuple[int, ...], w: tuple[int, ...], attrs: ConvTransposeAttrs) -> None:
    check_rule("conv_transpose", random(*x), random(*w), attrs=attrs)


def test_blocks_and_windows() -> None:
    attrs = Col2ImAttrs(exprs(4, 5), exprs(2, 2), (2, 2), (1, 0, 0, 1), (1, 1))
    check_rule("col2im", random(2, 8, 6), attrs=attrs)
    window = ((2, 1), (1, 0, 0, 1), (1, 2), LAST, (3, 2))
    check_rule("im2col", random(1, 5, 4, 2), attrs=Im2ColAttrs(*window, 14))
    check_rule("im2col", random(1, 5, 4, 2), attrs=Im2ColAttrs(*window, 20, 6))


def test_groups_of_their_own() -> None:
    attrs = WindowAttrs((2,), (1, 1), (1,))
    check_rule("group_conv", random(1, 4, 5), random(2, 3, 2, 3), attrs=attrs)
    attrs = WindowAttrs((2, 1), (1, 0, 1, 0), (1, 1), LAST)
    check_rule("group_conv", random(1, 5, 2, 2), random(2, 3, 2, 3), attrs=attrs)


def test_what_passes_make() -> None:
    x = random(1, 8, 8, 4)
    with pytest.raises(UnsupportedError, match="passes make it of convolutions"):
        gradient_graph("winograd_input", (x,), WinogradAttrs((2, 2), (3, 3), (1, 1), exprs(8, 8)))
