"""Convolutions against loops over every output element, in both layouts."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Reduce, Var, as_int
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Program
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(5)


def conv_loops(x: np.ndarray, w: np.ndarray, a: ConvAttrs) -> np.ndarray:
    """Convolution of NCHW data, window by window, in double precision."""
    rank = len(a.strides)
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(a.before, a.after, strict=True)])
    oc, group_in, *kernel = w.shape
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, a.dilations, strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, a.strides, strict=True)]
    y = np.zeros((x.shape[0], oc, *sizes))
    for o, where in product(range(oc), product(*map(range, sizes))):
        first = o // (oc // a.groups) * group_in
        window = tuple(
            slice(p * s, p * s + r, d)
            for p, s, r, d in zip(where, a.strides, reach, a.dilations, strict=True)
        )
        part = x[(slice(None), slice(first, first + group_in), *window)]
        y[(slice(None), o, *where)] = (part * w[o]).sum(axis=tuple(range(1, rank + 2)))
    return y


def in_layout(x: np.ndarray, layout: str) -> np.ndarray:
    return x if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(x, 1, -1))


# Input and weight shapes, then strides, pads, dilations, groups.
CASES = {
    "plain": ((2, 3, 5, 7), (4, 3, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "pointwise": ((1, 5, 3, 4), (6, 5, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "same": ((1, 3, 6, 5), (2, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "strided": ((1, 2, 7, 8), (3, 2, 3, 2), (2, 3), (1, 0, 2, 1), (1, 1), 1),
    "dilated": ((1, 2, 9, 8), (3, 2, 3, 2), (1, 2), (2, 2, 2, 0), (2, 3), 1),
    "grouped": ((1, 6, 5, 4), (9, 2, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "depthwise": ((2, 5, 6, 6), (5, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 5),
    "multiplier": ((1, 3, 5, 5), (6, 1, 3, 3), (1, 1), (0, 1, 1, 0), (1, 1), 3),
    "1d": ((2, 3, 11), (4, 3, 5), (2,), (2, 1), (1,), 1),
    "3d": ((1, 2, 4, 3, 5), (3, 2, 2, 3, 2), (1, 1, 2), (0, 1, 1, 1, 1, 0), (1, 1, 1), 1),
    "no batch": ((0, 3, 5, 5), (4, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
}


@for_each("layout", ["channels_first", "channels_last"])
@for_each("case", CASES.values(), ids=CASES)
def test_conv(case: tuple, layout: str) -> None:
    x_shape, w_shape, strides, pads, dilations, groups = case
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    attrs = ConvAttrs(strides, pads, dilations, layout, groups)
    found = run_op("conv", in_layout(x, layout), w, attrs=attrs)
    expected = in_layout(conv_loops(x, w, attrs), layout)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    x = RNG.standard_normal((2, 3, 7, 9)).astype(np.float32)
    w = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    attrs = ConvAttrs((2, 2), (1, 1, 1, 1), (1, 1))
    found = run_op("conv", x, w, attrs=attrs, dims=[("N", 3, "H", "W")])
    np.testing.assert_allclose(found, conv_loops(x, w, attrs), rtol=1e-5, atol=1e-5)


@for_each("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_wide(dtype: type) -> None:
    # In the narrow type itself, adding 1 to 4096 would change nothing.
    x = np.ones((1, 64, 65), dtype)
    w = np.ones((1, 64, 65), dtype)
    attrs = ConvAttrs((1,), (0, 0), (1,))
    assert float(run_op("conv", x, w, attrs=attrs)[0, 0, 0]) == 4160


@for_each("dtype", [np.int8, np.uint8])
def test_bytes_are_summed_in_i32(dtype: type) -> None:
    x = RNG.integers(0, 256, (2, 40, 4, 5)).astype(np.uint8).view(dtype)
    w = RNG.integers(-128, 128, (3, 40, 3, 3)).astype(np.int8)
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1))
    found = run_op("conv_i32acc", x, w, attrs=attrs)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, conv_loops(x, w, attrs))


def test_integers_wrap() -> None:
    x, w = np.full((1, 3, 2), 2**30, np.int32), np.full((1, 3, 1), 2, np.int32)
    found = run_op("conv", x, w, attrs=ConvAttrs((1,), (0, 0), (1,)))
    np.testing.assert_array_equal(found, np.full((1, 1, 2), -(2**31), np.int32))


def test_nan_stays_in_its_windows() -> None:
    x = np.zeros((1, 1, 6), np.float32)
    x[0, 0, 5] = np.nan
    found = run_op("conv", x, np.ones((1, 1, 3), np.float32), attrs=ConvAttrs((1,), (1, 1), (1,)))
    np.testing.assert_array_equal(np.isnan(found[0, 0]), [False] * 4 + [True] * 2)


def program(op: str, attrs: ConvAttrs, *types: TensorType) -> Program:
    b = Builder(op)
    inputs = [b.input(f"x{i}", t.dtype, t.shape) for i, t in enumerate(types)]
    row = get_op(op)
    return b.program(row.te(b, attrs, inputs, [row.infer(attrs, types)]))


def reduction(p: Program) -> list[int | None]:
    body = p.stages[-1].body
    assert isinstance(body, Reduce)
    return [as_int(extent) for _, extent in body.axes]


def test_the_form_that_schedules_look_for() -> None:
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last")
    found = program("conv", attrs, tensor(F32, Var("N"), 8, 8, 16), tensor(F32, 32, 16, 3, 3))
    assert [s.name for s in found.stages] == ["padded", "y"]
    assert reduction(found) == [3, 3, 16]
    unpadded = ConvAttrs((1, 1), (0, 0, 0, 0), (1, 1))
    plain = program("conv", unpadded, tensor(F32, 1, 16, 8, 8), tensor(F32, 32, 16, 1, 1))
    assert [s.name for s in plain.stages] == ["y"]
    depthwise = ConvAttrs((1, 1), (0, 0, 0, 0), (1, 1), groups=16)
    one = program("conv", depthwise, tensor(F32, 1, 16, 8, 8), tensor(F32, 16, 1, 3, 3))
    assert reduction(one) == [3, 3]
    assert str(one.stages[-1].body.body) == "x0[i0, i1, i2 + r0, i3 + r1] * x1[i1, 0, r0, r1]"


def test_flops() -> None:
    attrs = ConvAttrs((1,), (0, 0), (1,))
    types = [tensor(F32, 2, 3, 8), tensor(F32, 5, 3, 3)]
    row = get_op("conv")
    out = row.infer(attrs, types)
    assert as_int(row.cost(attrs, types, [out])) == 2 * (2 * 5 * 6) * (3 * 3)


@for_each(
    ("x", "w", "groups", "message"),
    [
        (tensor(F32, 1, 3, 5), tensor(F32, 4, 2, 3), 1, "do not fit 3"),
        (tensor(F32, 1, 3, 5), tensor(F32, 4, 1, 3), 2, "do not divide"),
        (tensor(F32, 1, 3, 5), tensor(F32, 4, 3, 3, 3), 1, "do not fit"),
        (tensor(F32, 1, 3, 2), tensor(F32, 4, 3, 3), 1, None),
        (tensor(F32, 1, 3, 1), tensor(F32, 4, 3, 3), 1, "larger"),
    ],
)
def test_refusals(x: TensorType, w: TensorType, groups: int, message: str | None) -> None:
    attrs = ConvAttrs((1,), (0, 0), (1,), groups=groups)
    if message is None:  # exactly no window is no mistake
        assert as_int(get_op("conv").infer(attrs, [x, w]).elements) == 0
        return
    with pytest.raises(TypeCheckError, match=message):
        get_op("conv").infer(attrs, [x, w])
