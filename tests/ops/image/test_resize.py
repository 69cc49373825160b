from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ops.image.resize import (
    ROUNDINGS,
    TRANSFORMS,
    ResizeAttrs,
    along_axis,
    resampled_axes,
    sample_tables,
)

RNG = np.random.default_rng(6)
PLAIN = [t for t in TRANSFORMS if t not in ("tf_crop_and_resize", "tf_half_pixel_for_nn")]


def resized(x: np.ndarray, shape: tuple[int, ...], **modes: object) -> np.ndarray:
    scales = tuple((const(n), const(o)) for n, o in zip(shape, x.shape, strict=True))
    op = "resize_nearest" if modes.get("mode", "nearest") == "nearest" else "resize"
    return run_op(op, x, attrs=ResizeAttrs(exprs(*shape), scales, **modes))


def expected(x: np.ndarray, shape: tuple[int, ...], **modes: object) -> np.ndarray:
    """What the reference implementation of ONNX computes."""
    node = helper.make_node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode=modes.get("mode", "nearest"),
        coordinate_transformation_mode=modes.get("transform", "half_pixel"),
        nearest_mode=modes.get("rounding", "round_prefer_floor"),
        cubic_coeff_a=modes.get("cubic_coeff", -0.75),
        exclude_outside=int(modes.get("exclude_outside", False)),
    )
    return ReferenceEvaluator(node).run(None, {"x": x, "sizes": np.array(shape)})[0]


@for_each(("transform", "rounding"), [*product(PLAIN, ROUNDINGS)])
@for_each("shape", [(1, 1), (2, 4), (6, 10), (7, 13), (3, 5)])
def test_nearest(transform: str, rounding: str, shape: tuple[int, ...]) -> None:
    x = np.arange(15, dtype=np.int32).reshape(3, 5)
    found = resized(x, shape, transform=transform, rounding=rounding)
    grid = [nearest(old, new, transform, rounding) for old, new in zip(x.shape, shape, strict=True)]
    np.testing.assert_array_equal(found, x[np.ix_(*grid)])


def nearest(old: int, new: int, transform: str, rounding: str) -> list[int]:
    """The source of each element, computed with fractions of a common denominator of 4 * new."""
    places = []
    for i in range(new):
        half = (2 * i + 1) * 2 * old - 2 * new  # ((i + 1/2) * old / new - 1/2) * 4 * new
        place = {
            "half_pixel": half,
            "half_pixel_symmetric": half,
            "pytorch_half_pixel": half if new > 1 else 0,
            "asymmetric": i * old * 4,
            "align_corners": i * (old - 1) * 4 * new / (new - 1) if new > 1 else 0,
        }[transform] / (4 * new)
        whole = np.floor(place + 1e-9)
        part = place - whole
        if abs(part) < 1e-9:
            up = False
        else:
            up = {
                "floor": False,
                "ceil": True,
                "round_prefer_floor": part > 0.5 + 1e-9,
                "round_prefer_ceil": part > 0.5 - 1e-9,
            }[rounding]
        places.append(int(np.clip(whole + up, 0, old - 1)))
    return places


@for_each(("mode", "transform"), [*product(["linear", "cubic"], PLAIN)])
@for_each("shape", [(2, 2), (6, 10), (5, 3), (4, 7)])
def test_interpolation(mode: str, transform: str, shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal((4, 5)).astype(np.float32)
    found = resized(x, shape, mode=mode, transform=transform)
    wanted = expected(x, shape, mode=mode, transform=transform)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@for_each("transform", PLAIN)
def test_a_single_element(transform: str) -> None:
    x = RNG.standard_normal((4, 5)).astype(np.float32)
    found = resized(x, (1, 1), mode="linear", transform=transform)
    wanted = expected(x, (1, 1), mode="linear", transform=transform)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@for_each("mode", ["linear", "cubic"])
def test_exclude_outside(mode: str) -> None:
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    found = resized(x, (7, 5), mode=mode, exclude_outside=True, cubic_coeff=-0.5)
    wanted = expected(x, (7, 5), mode=mode, exclude_outside=True, cubic_coeff=-0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_four_dimensions() -> None:
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    found = resized(x, (2, 3, 8, 10), mode="linear")
    wanted = expected(x, (2, 3, 8, 10), mode="linear")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_regions_and_extrapolation() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    modes = {"mode": "linear", "transform": "tf_crop_and_resize", "extrapolation": 10.0}
    found = resized(x, (3, 3), roi=((0.25, 0.75), (0.5, 1.5)), **modes)
    rows = np.array([0.75, 1.5, 2.25])
    np.testing.assert_allclose(found, np.stack([rows * 4 + 1.5, rows * 4 + 3, [10] * 3], 1))
    middle = resized(x, (1, 1), roi=((0.0, 1.0), (0.0, 1.0)), **modes)
    np.testing.assert_allclose(middle, [[7.5]])


@for_each("n", [1, 3])
def test_symbolic_sizes(n: int) -> None:
    x = RNG.standard_normal((n, 4)).astype(np.float32)
    attrs = ResizeAttrs(
        (Var("N") * 2, const(4)), ((const(2), const(1)), (const(1), const(1))), mode="linear"
    )
    found = run_op("resize", x, attrs=attrs, dims=[("N", 4)])
    wanted = expected(x, (2 * n, 4), mode="linear")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@for_each("dtype", [np.float16, np.float64, np.uint8])
def test_element_types(dtype: type) -> None:
    x = RNG.integers(0, 200, (3, 3)).astype(dtype)
    found = resized(x, (6, 6), mode="linear", transform="asymmetric")
    wanted = expected(x.astype(np.float64), (6, 6), mode="linear", transform="asymmetric")
    np.testing.assert_allclose(found, wanted.astype(dtype), rtol=1e-3)


def test_refusals() -> None:
    x = np.ones((2, 2), np.float32)
    with pytest.raises(TypeCheckError, match="no mode 'area'"):
        resized(x, (4, 4), mode="area")
    with pytest.raises(TypeCheckError, match="no mode 'center'"):
        resized(x, (4, 4), transform="center")
    with pytest.raises(TypeCheckError, match="region of interest"):
        resized(x, (4, 4), transform="tf_crop_and_resize")
    with pytest.raises(TypeCheckError, match="one size"):
        run_op("resize", x, attrs=ResizeAttrs(exprs(4), ((const(1), const(1)),)))


def test_samples_by_tables() -> None:
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    places = np.array([[0, 4, 2], [1, 4, 0]])
    weights = np.array([[0.5, 1, -1], [0.5, 0, 2]], np.float32)
    found = run_op("resample", x, places, weights)
    expected = x[:, places[0]] * weights[0] + x[:, places[1]] * weights[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(TypeCheckError, match="resample"):
        run_op("resample", x, places.astype(np.int32), weights)
    with pytest.raises(TypeCheckError, match="resample"):
        run_op("resample", x, places[0], weights[0])


def test_one_axis_of_several() -> None:
    shape = exprs(2, 3, 8)
    attrs = ResizeAttrs(exprs(2, 6, 4), tuple(zip(exprs(2, 6, 4), shape, strict=True)), "linear")
    assert resampled_axes(attrs, shape) == (1, 2)
    alone = along_axis(attrs, shape, 1)
    assert alone.shape == exprs(2, 6, 8)
    assert resampled_axes(alone, shape) == (1,)
    tables = sample_tables(attrs, shape, 2, F32)
    assert tables is not None
    places, weights = tables
    np.testing.assert_array_equal(places, [[0, 2, 4, 6], [1, 3, 5, 7]])
    np.testing.assert_array_equal(weights, np.full((2, 4), 0.5, np.float32))
    assert sample_tables(attrs, (shape[0], shape[1], Var("N")), 2, F32) is None


def test_a_large_part_of_a_large_image() -> None:
    """No product of sizes and of the digits of a region is beyond 64 bits."""
    x, (start, end) = np.arange(1500, dtype=np.float32), (np.float32(0.1), np.float32(0.9))
    modes = {"mode": "linear", "transform": "tf_crop_and_resize"}
    found = resized(x, (600,), roi=((float(start), float(end)),), **modes)
    np.testing.assert_allclose(found, np.linspace(start * 1499, end * 1499, 600), rtol=1e-5)


@for_each("end", [np.nan, np.inf, -1e30, 1000.0])
def test_regions_far_from_the_image(end: float) -> None:
    modes = {"mode": "linear", "transform": "tf_crop_and_resize"}
    with pytest.raises(TypeCheckError, match="ends beyond"):
        resized(np.ones(4, np.float32), (3,), roi=((0.0, end),), **modes)
    tiny = resized(np.arange(4, dtype=np.float32), (3,), roi=((0.0, 1e-40),), **modes)
    np.testing.assert_array_equal(tiny, [0, 0, 0])
