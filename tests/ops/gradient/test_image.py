"""Gradients of resizing against differences."""

from __future__ import annotations

import numpy as np

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tests.ops.run_op import exprs
from tilewright.arith.expr import Expr, const
from tilewright.ops.image.resize import ResizeAttrs

RNG = np.random.default_rng(9)


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


def ratio(n: int, d: int) -> tuple[Expr, Expr]:
    return const(n), const(d)


SCALES = (ratio(1, 1), ratio(5, 3), ratio(1, 2))


@for_each("transform", ["half_pixel", "align_corners", "asymmetric"])
@for_each("mode", ["nearest", "linear", "cubic"])
def test_resize(mode: str, transform: str) -> None:
    op = "resize_nearest" if mode == "nearest" else "resize"
    attrs = ResizeAttrs(exprs(1, 5, 2), SCALES, mode, transform)
    check_rule(op, random(1, 3, 4), attrs=attrs)


def test_borders() -> None:
    scales = (ratio(1, 1), ratio(5, 3), ratio(3, 4))
    outside = ResizeAttrs(exprs(1, 5, 3), scales, "cubic", exclude_outside=True)
    check_rule("resize", random(1, 3, 4), attrs=outside)
    roi = ((0.0, 1.0), (0.2, 1.3), (-0.2, 0.8))
    attrs = ResizeAttrs(
        exprs(1, 5, 3), scales, "linear", "tf_crop_and_resize", extrapolation=3.0, roi=roi
    )
    check_rule("resize", random(1, 3, 4), attrs=attrs)


def test_one_dimension() -> None:
    check_rule("resize", random(4), attrs=ResizeAttrs(exprs(3), (ratio(3, 4),), "linear"))


def test_samples_along_the_last_axis() -> None:
    check_rule("resample", random(2, 5), RNG.integers(0, 5, (3, 4)), random(3, 4))


def test_natively() -> None:
    attrs = ResizeAttrs(exprs(1, 2, 6, 9), (ratio(1, 1), ratio(1, 1), ratio(2, 1), ratio(3, 1)))
    _, backward = gradient_graph("resize_nearest", (np.zeros((1, 2, 3, 3), np.float32),), attrs)
    check_native(backward, random_inputs(backward, {}))
