"""Gradients of operators that move elements against differences."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule
from tests.ops.run_op import exprs
from tilewright.arith.expr import const
from tilewright.ops.tensor.manipulation import (
    BlockAttrs,
    ExpandAttrs,
    ReshapeAttrs,
    ReverseAttrs,
    TileAttrs,
    TransposeAttrs,
    TriluAttrs,
)
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 2, (2, 3, 4))


def test_arrangements() -> None:
    check_rule("transpose", X, attrs=TransposeAttrs((2, 0, 1)))
    check_rule("reshape", X, attrs=ReshapeAttrs(exprs(4, 6)))
    check_rule("expand", X[:, :1].copy(), attrs=ExpandAttrs(exprs(3, 2, 3, 4)))
    check_rule("tile", X, attrs=TileAttrs(exprs(2, 1, 3)))
    check_rule("reverse", X, attrs=ReverseAttrs((0, 2)))
    check_rule("tile", np.zeros((0, 2)), attrs=TileAttrs(exprs(2, 3)))


def test_triangles() -> None:
    check_rule("trilu", X, attrs=TriluAttrs(False, const(1)))
    check_rule("trilu", X, np.array(-1), attrs=TriluAttrs(True))


def test_blocks() -> None:
    deep = RNG.uniform(-1, 1, (1, 4, 2, 1))
    for mode in ("DCR", "CRD"):
        check_rule("depth_to_space", deep, attrs=BlockAttrs(2, mode))
        check_rule("space_to_depth", deep.reshape(1, 1, 4, 2), attrs=BlockAttrs(2, mode))


@for_each(
    "starts, stops, steps",
    [
        ((0, 1, 0), (2, 3, 4), (1, 1, 3)),
        ((1, 2, 3), (-1, 0, -1), (-1, -1, -2)),
        ((0, 0, 0), (2, 0, 4), (1, 1, 1)),
        ((0, 2, 3), (2, -1, 0), (1, -2, -3)),
    ],
)
@for_each("op", ["slice", "slice_view"])
def test_slices(op: str, starts: tuple[int], stops: tuple[int], steps: tuple[int]) -> None:
    check_rule(op, X, attrs=SliceAttrs(exprs(*starts), exprs(*stops), steps))


@for_each("op", ["concat", "concat_view"])
def test_joined(op: str) -> None:
    parts = (X, X[:, :1].copy(), X[:, 1:1].copy(), X[:, 1:].copy())
    check_rule(op, *parts, attrs=ConcatAttrs(-2))


def test_padding() -> None:
    attrs = PadAttrs(exprs(0, 1, -1), exprs(2, -2, 1))
    check_rule("pad", X, attrs=attrs)
    check_rule("pad", X, np.array([2.0]), attrs=attrs)


@for_each("mode", ["edge", "reflect", "wrap"])
def test_repeated_elements(mode: str) -> None:
    check_rule("pad", X, attrs=PadAttrs(exprs(0, 1, 2), exprs(0, 2, -1), mode))


def test_symbolic_sizes() -> None:
    dims = [("N", 3, 4)]
    stops = exprs("N", 3, 4)
    check_rule("slice", X, attrs=SliceAttrs(exprs(0, 1, 0), stops, (1, 1, 3)), dims=dims)
    check_rule("pad", X, attrs=PadAttrs(exprs(1, 0, 2), exprs(1, 0, 1), "edge"), dims=dims)
