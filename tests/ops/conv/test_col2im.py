from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import exprs, run_op
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(3)


def _reference(
    x: np.ndarray, a: Col2ImAttrs, image: tuple[int, ...], kernel: tuple[int, ...]
) -> np.ndarray:
    rank = len(image)
    ends = [n + a.pads[d] + a.pads[d + rank] for d, n in enumerate(image)]
    counts = [
        (e - (k - 1) * s - 1) // t + 1
        for e, k, s, t in zip(ends, kernel, a.dilations, a.strides, strict=True)
    ]
    blocks = x.reshape(x.shape[0], -1, *kernel, *counts)
    y = np.zeros((*blocks.shape[:2], *ends), x.dtype)
    for taps in np.ndindex(*kernel):
        for b in np.ndindex(*counts):
            place = tuple(b[d] * a.strides[d] + taps[d] * a.dilations[d] for d in range(rank))
            y[(..., *place)] += blocks[(..., *taps, *b)]
    inner = tuple(slice(a.pads[d], a.pads[d] + image[d]) for d in range(rank))
    return y[(..., *inner)]


@for_each(
    ("image", "kernel", "strides", "pads", "dilations", "blocks"),
    [
        ((7,), (3,), (2,), (0, 1), (1,), 3),
        ((5, 6), (2, 3), (1, 2), (1, 0, 0, 1), (2, 1), 4 * 3),
        ((11,), (4,), (4,), (1, 0), (2,), 2),
        ((13, 10), (3, 2), (3, 6), (0, 1, 1, 0), (2, 4), 4 * 2),
        ((9, 9), (5, 5), (1, 1), (0, 0, 0, 0), (1, 1), 5 * 5),
        ((9, 9), (1, 1), (3, 2), (0, 0, 0, 0), (1, 1), 3 * 5),
        ((3, 4, 5), (2, 1, 3), (1, 1, 1), (0, 1, 1, 0, 1, 1), (1, 1, 2), 2 * 6 * 3),
    ],
)
def test_blocks(
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    blocks: int,
) -> None:
    attrs = Col2ImAttrs(exprs(*image), exprs(*kernel), strides, pads, dilations)
    x = RNG.integers(-9, 9, (2, 2 * int(np.prod(kernel)), blocks)).astype("f4")
    np.testing.assert_array_equal(
        run_op("col2im", x, attrs=attrs), _reference(x, attrs, image, kernel)
    )
    halves = run_op("col2im", x.astype("f2"), attrs=attrs)
    np.testing.assert_array_equal(halves, _reference(x, attrs, image, kernel).astype("f2"))


def test_what_does_not_fit() -> None:
    infer = get_op("col2im").infer
    attrs = Col2ImAttrs(exprs(4, 4), exprs(2, 2), (1, 1), (0, 0, 0, 0), (1, 1))
    assert infer(attrs, [tensor(F32, 2, 8, 9)]) == tensor(F32, 2, 2, 4, 4)
    for shape in ((2, 8, 8), (2, 7, 9), (2, 8, 3, 3)):
        with pytest.raises(TypeCheckError):
            infer(attrs, [tensor(F32, *shape)])
    with pytest.raises(TypeCheckError, match="every axis"):
        infer(
            Col2ImAttrs(exprs(4), exprs(2, 2), (1, 1), (0,) * 4, (1, 1)),
            [tensor(F32, 2, 8, 9)],
        )
    for strides, pads in (((0, 1), (0,) * 4), ((1, 1), (0,) * 3), ((1, 1), (-1, 0, 0, 0))):
        with pytest.raises(TypeCheckError):
            infer(replace(attrs, strides=strides, pads=pads), [tensor(F32, 2, 8, 9)])
