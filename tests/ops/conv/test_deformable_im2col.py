from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.conv.deformable_im2col import DeformableIm2ColAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(15)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def bilinear(image: np.ndarray, at: tuple[float, ...]) -> float:
    """Interpolation in an image of any rank, zero outside."""
    total = 0.0
    for corner in product((0, 1), repeat=image.ndim):
        index = tuple(int(np.floor(p)) + c for p, c in zip(at, corner, strict=True))
        if all(0 <= i < n for i, n in zip(index, image.shape, strict=True)):
            near = [
                p - np.floor(p) if c else 1 - p + np.floor(p)
                for p, c in zip(at, corner, strict=True)
            ]
            total += float(image[index]) * float(np.prod(near))
    return total


def sample_loops(
    x: np.ndarray, offset: np.ndarray, mask: np.ndarray, a: DeformableIm2ColAttrs
) -> np.ndarray:
    sizes = offset.shape[2:]
    offset = offset.reshape(x.shape[0], a.groups, *a.kernel, a.rank, *sizes)
    mask = mask.reshape(x.shape[0], a.groups, *a.kernel, *sizes)
    y = np.zeros((*x.shape[:2], *a.kernel, *sizes), np.float32)
    for n, c, *rest in np.ndindex(*y.shape):
        k, p = tuple(rest[: a.rank]), tuple(rest[a.rank :])
        group = c // (x.shape[1] // a.groups)
        at = tuple(
            p[d] * a.strides[d]
            + k[d] * a.dilations[d]
            - a.before[d]
            + float(offset[(n, group, *k, d, *p)])
            for d in range(a.rank)
        )
        y[(n, c, *k, *p)] = bilinear(x[n, c], at) * mask[(n, group, *k, *p)]
    return y


CASES = {
    "2d": ((2, 4, 5, 6), (4, 5), DeformableIm2ColAttrs((2, 2), (1, 1), (0, 0), (1, 1))),
    "strided": ((1, 4, 7, 6), (3, 2), DeformableIm2ColAttrs((3, 2), (2, 3), (1, 0), (1, 2), 2)),
    "1d": ((1, 2, 8), (5,), DeformableIm2ColAttrs((3,), (1,), (0,), (2,))),
}


@for_each("masked", [False, True])
@for_each("case", CASES.values(), ids=CASES)
def test_against_loops(case: tuple, masked: bool) -> None:
    shape, sizes, attrs = case
    taps = attrs.groups * int(np.prod(attrs.kernel))
    x, offset = normal(*shape), normal(shape[0], taps * attrs.rank, *sizes) * 2
    mask = normal(shape[0], taps, *sizes) if masked else np.ones((shape[0], taps, *sizes))
    inputs = [x, offset, *([mask] if masked else [])]
    found = run_op("deformable_im2col", *inputs, attrs=attrs)
    np.testing.assert_allclose(found, sample_loops(x, offset, mask, attrs), rtol=1e-4, atol=1e-5)


def test_far_away_is_zero() -> None:
    attrs = DeformableIm2ColAttrs((1,), (1,), (0,), (1,))
    offset = np.array([[[1e30, -1e30]]], np.float32)
    found = run_op("deformable_im2col", np.ones((1, 1, 3), np.float32), offset, attrs=attrs)
    np.testing.assert_array_equal(found, np.zeros((1, 1, 1, 2)))


@for_each(
    ("ins", "message"),
    [
        ([tensor(F32, 1, 2, 5), tensor(F32, 1, 8, 4, 4)], "do not fit 2 axes"),
        ([tensor(F32, 1, 2, 5, 5), tensor(F32, 1, 4, 4, 4)], "2 a tap"),
        ([tensor(F32, 1, 2, 5, 5), tensor(F32, 1, 8, 4, 4), tensor(F32, 1, 8, 4, 4)], "mask"),
    ],
)
def test_refusals(ins: list[TensorType], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op("deformable_im2col").infer(
            DeformableIm2ColAttrs((2, 2), (1, 1), (0, 0), (1, 1)), ins
        )
