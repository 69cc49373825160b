"""Sampling, against the reference implementation of ONNX."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, run_node
from tests.frontends.onnx.one_node import check, results
from tilewright.core.errors import FrontendError
from tilewright.ops.image.grid_sample import PADDINGS

RNG = np.random.default_rng(8)


@for_each(
    ("mode", "padding", "corners"), list(product(("nearest", "linear", "cubic"), PADDINGS, (0, 1)))
)
@for_each("shape", [(2, 1, 5, 3), (1, 2, 3, 4, 2)])
def test_grid_sample(shape: tuple[int, ...], mode: str, padding: str, corners: int) -> None:
    x = RNG.standard_normal(shape).astype("f4")
    rank = len(shape) - 2
    grid = RNG.uniform(-3, 3, (shape[0], *(3,) * rank, rank)).astype("f4")
    check(
        "GridSample",
        {"x": x, "grid": grid},
        mode=mode,
        padding_mode=padding,
        align_corners=corners,
    )


def test_modes_of_version_16() -> None:
    x, grid = RNG.standard_normal((1, 1, 3, 3)), RNG.uniform(-1, 1, (1, 2, 2, 2))
    inputs = {"x": x.astype("f4"), "grid": grid.astype("f4")}
    for old, new in (("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")):
        (found,) = results("GridSample", inputs, mode=old, opset=16)
        np.testing.assert_array_equal(found, results("GridSample", inputs, mode=new, opset=20)[0])
    with pytest.raises(FrontendError, match="mode 'quintic'"):
        results("GridSample", inputs, mode="quintic", opset=16)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
def test_roi_align(mode: str, samples: int) -> None:
    x = RNG.standard_normal((2, 2, 6, 7)).astype("f4")
    corners = RNG.uniform(0, 5, (4, 2))
    rois = np.concatenate([corners, corners + RNG.uniform(1, 6, (4, 2))], 1).astype("f4")
    inputs = {"x": x, "rois": rois, "images": np.array([1, 0, 1, 1])}
    options = {"mode": mode, "output_height": 2, "output_width": 3, "spatial_scale": 0.75}
    for transform in ("half_pixel", "output_half_pixel"):
        check(
            "RoiAlign",
            inputs,
            sampling_ratio=samples,
            coordinate_transformation_mode=transform,
            **options,
        )


def test_max_roi_pool() -> None:
    x = RNG.standard_normal((1, 2, 6, 7)).astype("f4")
    rois = np.array([[0, 0, 0, 6, 5], [0, 2, 2, 5, 4]], "f4")
    check_node("MaxRoiPool", [x, rois], pooled_shape=[2, 3])
    with pytest.raises(FrontendError, match="pooled_shape"):
        run_node("MaxRoiPool", [x, rois], pooled_shape=[2])
