"""Transposed convolutions against loops over every input element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvTransposeAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op
from tilewright.passes.canonicalize.decompose import decompose

RNG = np.random.default_rng(15)


def _in_layout(x: np.ndarray, layout: str) -> np.ndarray:
    return x if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _loops(x: np.ndarray, w: np.ndarray, a: ConvTransposeAttrs) -> np.ndarray:
    """Every input element adds a copy of the kernel to the output."""
    kernel, rank = w.shape[2:], len(a.strides)
    group_in, group_out = x.shape[1] // a.groups, w.shape[1]
    full = [
        (n - 1) * s + (k - 1) * d + 1 + p
        for n, s, k, d, p in zip(
            x.shape[2:], a.strides, kernel, a.dilations, a.output_padding, strict=True
        )
    ]
    y = np.zeros((x.shape[0], group_out * a.groups, *full))
    for c, where, taps in product(
        range(x.shape[1]), product(*map(range, x.shape[2:])), product(*map(range, kernel))
    ):
        at = tuple(
            p * s + k * d for p, s, k, d in zip(where, a.strides, taps, a.dilations, strict=True)
        )
        outs = slice(c // group_in * group_out, (c // group_in + 1) * group_out)
        value = x[(slice(None), c, *where)][:, None] * w[(c, slice(None), *taps)]
        y[(slice(None), outs, *at)] += value
    cut = tuple(slice(b, n - e) for b, e, n in zip(a.before, a.after, full, strict=True))
    assert len(cut) == rank
    return y[(slice(None), slice(None), *cut)]


# Input and weight shapes, then strides, pads, dilations, groups, output padding.
CASES = {
    "plain": ((1, 3, 4, 5), (3, 2, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    "strided": ((2, 3, 4, 3), (3, 2, 3, 2), (2, 3), (1, 0, 1, 1), (1, 1), 1, (0, 0)),
    "output padding": ((1, 2, 3, 3), (2, 2, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, (1, 0)),
    "dilated": ((1, 2, 4, 3), (2, 3, 2, 3), (1, 2), (0, 1, 2, 0), (3, 2), 1, (0, 1)),
    "grouped": ((1, 6, 3, 3), (6, 2, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 3, (1, 1)),
    "depthwise": ((1, 4, 3, 3), (4, 1, 2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 4, (0, 0)),
    "pads beyond the kernel": ((1, 2, 6), (2, 1, 2), (2,), (3, 2), (1,), 1, (0,)),
    "output beyond the kernel": ((1, 2, 3), (2, 1, 2), (2,), (0, 1), (1,), 1, (4,)),
    "nothing": ((2, 3, 0), (3, 2, 2), (2,), (0, 0), (1,), 1, (1,)),
    "1d": ((2, 2, 5), (2, 3, 4), (3,), (1, 2), (1,), 1, (2,)),
    "3d": (
        (1, 2, 2, 3, 2),
        (2, 1, 2, 2, 3),
        (2, 1, 2),
        (0, 1, 1, 1, 0, 0),
        (1, 1, 1),
        1,
        (1, 0, 0),
    ),
}


@for_each("layout", ["channels_first", "channels_last"])
@for_each("case", CASES.values(), ids=CASES)
def test_against_loops(case: tuple, layout: str) -> None:
    x_shape, w_shape, strides, pads, dilations, groups, output_padding = case
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    attrs = ConvTransposeAttrs(strides, pads, dilations, layout, groups, output_padding)
    found = run_op("conv_transpose", _in_layout(x, layout), w, attrs=attrs)
    expected = _in_layout(_loops(x, w, attrs), layout)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@for_each("value", [np.inf, -np.inf, np.nan])
@for_each("case", CASES.values(), ids=CASES)
def test_only_what_is_there_is_multiplied(case: tuple, value: float) -> None:
    x_shape, w_shape, strides, pads, dilations, groups, output_padding = case
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    w[0, 0] = value
    attrs = ConvTransposeAttrs(strides, pads, dilations, "channels_first", groups, output_padding)
    found = run_op("conv_transpose", x, w, attrs=attrs)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, _loops(x, w, attrs), rtol=1e-5, atol=1e-5)


def test_short_floats_are_summed_in_long_ones() -> None:
    x, w = np.ones((1, 2049, 2), np.float16), np.ones((2049, 1, 2), np.float16)
    attrs = ConvTransposeAttrs((1,), (0, 0), (1,), output_padding=(0,))
    found = run_op("conv_transpose", x, w, attrs=attrs)
    np.testing.assert_array_equal(found, np.float16([[[2049, 4098, 2049]]]))


@for_each("constant", [True, False])
def test_which_form(constant: bool) -> None:
    g = GraphBuilder("test")
    x, weights = g.input("x", tensor(F32, 1, 3, 4)), np.ones((3, 2, 2), np.float32)
    w = g.constant(weights, "w") if constant else g.input("w", tensor(F32, 3, 2, 2))
    attrs = ConvTransposeAttrs((2,), (0, 0), (1,), output_padding=(0,))
    ops = [
        n.op for n in decompose(g.graph(g.add("conv_transpose", x, w, attrs=attrs)), ON_CPU).nodes
    ]
    assert ("conv" in ops, "col2im" in ops) == (constant, not constant)


def test_refusals() -> None:
    infer = get_op("conv_transpose").infer
    attrs = ConvTransposeAttrs((1,), (0, 0), (1,), output_padding=(0,))
    with pytest.raises(TypeCheckError, match="do not fit 3"):
        infer(attrs, [tensor(F32, 1, 3, 5), tensor(F32, 4, 3, 3)])
    with pytest.raises(TypeCheckError, match="output_padding"):
        infer(ConvTransposeAttrs((1,), (0, 0), (1,)), [tensor(F32, 1, 3, 5), tensor(F32, 3, 3, 3)])
    with pytest.raises(TypeCheckError, match="without elements"):
        infer(attrs, [tensor(F32, 1, 3, 5), tensor(F32, 3, 3, 0)])
