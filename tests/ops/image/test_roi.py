from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.image.roi import MaxRoiPoolAttrs, RoiAlignAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(5)


def test_whole_elements_are_themselves() -> None:
    """Bins of one element, sampled in its centre."""
    x = RNG.standard_normal((2, 3, 4, 5)).astype("f4")
    rois = np.array([[0, 0, 5, 4], [1, 1, 3, 3]], "f4")
    found = run_op("roi_align", x, rois[:1], np.array([1]), attrs=RoiAlignAttrs((4, 5), 1))
    np.testing.assert_allclose(found, x[1:], rtol=1e-6)
    found = run_op("roi_align", x, rois[1:], np.array([0]), attrs=RoiAlignAttrs((2, 2)))
    np.testing.assert_allclose(found, x[:1, :, 1:3, 1:3], rtol=1e-6)


def test_as_many_samples_as_a_bin_has_elements() -> None:
    """Bins of two by three elements are their means."""
    x = RNG.standard_normal((1, 1, 4, 6)).astype("f4")
    rois = np.array([[0, 0, 6, 4]], "f4")
    found = run_op("roi_align", x, rois, np.array([0]), attrs=RoiAlignAttrs((2, 2)))
    means = x.reshape(1, 1, 2, 2, 2, 3).mean((3, 5))
    np.testing.assert_allclose(found, means, rtol=1e-5)


def test_regions_outside_and_of_no_size() -> None:
    x = np.ones((1, 1, 3, 3), "f4")
    rois = np.array([[20, 20, 30, 30], [1, 1, 1, 1], [np.nan] * 4], "f4")
    images = np.array([0, 0, 0])
    found = run_op("roi_align", x, rois, images, attrs=RoiAlignAttrs(samples=2))
    np.testing.assert_array_equal(found.reshape(3)[:2], [0, 1])
    assert run_op("roi_align", x, rois, images, attrs=RoiAlignAttrs()).shape == (3, 1, 1, 1)
    empty = run_op("roi_align", x, rois[:0], images[:0], attrs=RoiAlignAttrs((2, 2)))
    assert empty.shape == (0, 1, 2, 2)


@for_each(("images", "wrong"), [(1, 1), (1, -1), (3, 3), (3, -1)])
def test_an_image_that_there_is_not_is_an_error(images: int, wrong: int) -> None:
    x, ends = np.ones((images, 1, 3, 3), "f4"), [0.0, 0.0, 2.0, 2.0]
    message = f"index {wrong} is outside a dimension of {images}"
    with pytest.raises(ExecutionError, match=message):
        run_op("roi_align", x, np.array([ends], "f4"), np.array([wrong]), attrs=RoiAlignAttrs())
    with pytest.raises(ExecutionError, match=message):
        run_op("max_roi_pool", x, np.array([[wrong, *ends]], "f4"), attrs=MaxRoiPoolAttrs((1, 1)))


def _max_pool(x: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    y = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    for r, (n, *ends) in enumerate(rois):
        left, top, right, bottom = (int(np.floor(e * scale + 0.5)) for e in ends)
        high, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in np.ndindex(*size):
            rows = slice(
                max(top + i * high // size[0], 0), max(top - (-(i + 1) * high // size[0]), 0)
            )
            columns = slice(
                max(left + j * wide // size[1], 0), max(left - (-(j + 1) * wide // size[1]), 0)
            )
            bin = x[int(n), :, rows, columns]
            y[r, :, i, j] = bin.max((1, 2)) if bin.size else 0
    return y


@for_each("scale", [1.0, 0.5])
def test_max_roi_pool(scale: float) -> None:
    x = RNG.standard_normal((2, 3, 9, 8)).astype("f4")
    rois = np.array([[0, 0, 0, 7, 8], [1, 2, 3, 5, 4], [0, 6, 6, 30, 30], [1, 4, 4, 2, 2]], "f4")
    found = run_op("max_roi_pool", x, rois, attrs=MaxRoiPoolAttrs((3, 2), scale))
    np.testing.assert_array_equal(found, _max_pool(x, rois, (3, 2), scale))


def test_operands_that_do_not_fit() -> None:
    align, pool = get_op("roi_align").infer, get_op("max_roi_pool").infer
    x = tensor(F32, 1, 2, 3, 4)
    with pytest.raises(TypeCheckError, match="4 numbers"):
        align(RoiAlignAttrs(), [x, tensor(F32, 5, 5), tensor(I64, 5)])
    with pytest.raises(TypeCheckError, match="image number"):
        align(RoiAlignAttrs(), [x, tensor(F32, 5, 4), tensor(I64, 6)])
    with pytest.raises(TypeCheckError, match="mode"):
        align(RoiAlignAttrs(mode="sum"), [x, tensor(F32, 5, 4), tensor(I64, 5)])
    with pytest.raises(TypeCheckError, match="5 numbers"):
        pool(MaxRoiPoolAttrs((1, 1)), [x, tensor(F32, 5, 4)])
