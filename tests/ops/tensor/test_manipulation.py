from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.tensor.build import Builder
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import (
    BlockAttrs,
    ExpandAttrs,
    ReshapeAttrs,
    ReverseAttrs,
    TileAttrs,
    TransposeAttrs,
    TriluAttrs,
)

RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@for_each(
    ("old", "new"),
    [
        ((6, 4), (4, 6)),
        ((2, 3, 4), (2, 12)),
        ((2, 1, 12), (1, 2, 3, 4, 1)),
        ((5, 7), (35,)),
        ((), (1, 1)),
        ((1, 1), ()),
        ((1, 1, 3), (3,)),
        ((3,), (3, 1, 1)),
        ((0, 4), (2, 0, 3)),
        ((4, 9, 2), (6, 6, 2)),
    ],
)
def test_reshape(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    x = random(*old)
    found = run_op("reshape", x, attrs=ReshapeAttrs(exprs(*new)))
    np.testing.assert_array_equal(found, x.reshape(new))


def test_reshape_indexes_runs_of_dimensions_apart() -> None:
    b = Builder("t")
    x = b.input("x", F32, (Var("N"), Var("S"), 768))
    attrs = ReshapeAttrs(exprs("N", "S", 12, 64))
    out = get_op("reshape").infer(attrs, [tensor(F32, Var("N"), Var("S"), 768)])
    get_op("reshape").te(b, attrs, [x], [out])
    assert str(b.stages[0].body) == "x[i0, i1, i2 * 64 + i3]"


def test_reshape_with_symbolic_sizes() -> None:
    x = random(3, 5, 8)
    attrs = ReshapeAttrs((Var("N") * Var("S"), const(2), const(4)))
    found = run_op("reshape", x, attrs=attrs, dims=[("N", "S", 8)])
    np.testing.assert_array_equal(found, x.reshape(15, 2, 4))


def test_reshape_refuses_another_number_of_elements() -> None:
    with pytest.raises(TypeCheckError, match="6 elements, the new shape has 8"):
        run_op("reshape", random(2, 3), attrs=ReshapeAttrs(exprs(2, 4)))


@for_each("perm", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_transpose(perm: tuple[int, ...]) -> None:
    x = random(2, 3, 5)
    found = run_op("transpose", x, attrs=TransposeAttrs(perm))
    np.testing.assert_array_equal(found, x.transpose(perm))


def test_transpose_refuses_what_is_no_permutation() -> None:
    with pytest.raises(TypeCheckError, match="does not permute"):
        run_op("transpose", random(2, 3), attrs=TransposeAttrs((0, 0)))


@for_each(("old", "new"), [((3, 1), (2, 3, 4)), ((), (2,)), ((1,), (0,)), ((2, 1), (2, 1))])
def test_expand(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    x = random(*old)
    found = run_op("expand", x, attrs=ExpandAttrs(exprs(*new)))
    np.testing.assert_array_equal(found, np.broadcast_to(x, new))


@for_each("shape", [(2,), (2, 4), ()])
def test_expand_refuses_shapes_that_do_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeCheckError, match="does not broadcast"):
        run_op("expand", random(3, 4), attrs=ExpandAttrs(exprs(*shape)))


@for_each("repeats", [(1, 1, 1), (2, 3, 1), (1, 0, 2)])
def test_tile(repeats: tuple[int, ...]) -> None:
    x = random(2, 1, 3)
    found = run_op("tile", x, attrs=TileAttrs(exprs(*repeats)))
    np.testing.assert_array_equal(found, np.tile(x, repeats))


def test_reverse() -> None:
    x = random(3, 4, 5)
    found = run_op("reverse", x, attrs=ReverseAttrs((0, -1)))
    np.testing.assert_array_equal(found, np.flip(x, (0, 2)))


@for_each("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str) -> None:
    x = random(2, 12, 3, 5)
    found = run_op("depth_to_space", x, attrs=BlockAttrs(2, mode))
    n, c, h, w = x.shape
    split = {"DCR": (n, 2, 2, c // 4, h, w), "CRD": (n, c // 4, 2, 2, h, w)}[mode]
    perm = {"DCR": (0, 3, 4, 1, 5, 2), "CRD": (0, 1, 4, 2, 5, 3)}[mode]
    expected = x.reshape(split).transpose(perm).reshape(n, c // 4, h * 2, w * 2)
    np.testing.assert_array_equal(found, expected)
    back = run_op("space_to_depth", found, attrs=BlockAttrs(2, mode))
    np.testing.assert_array_equal(back, x)


def test_blocks_must_divide() -> None:
    with pytest.raises(TypeCheckError, match="does not divide"):
        run_op("depth_to_space", random(1, 6, 2, 2), attrs=BlockAttrs(2))
    with pytest.raises(TypeCheckError, match="does not divide"):
        run_op("space_to_depth", random(1, 4, 2, 3), attrs=BlockAttrs(2))


@for_each("k", [-6, -1, 0, 2, 7])
@for_each("upper", [True, False])
def test_trilu(k: int, upper: bool) -> None:
    x = random(2, 4, 5)
    expected = np.triu(x, k) if upper else np.tril(x, k)
    known = run_op("trilu", x, attrs=TriluAttrs(upper, const(k)))
    given = run_op("trilu", x, np.array(k), attrs=TriluAttrs(upper))
    np.testing.assert_array_equal(known, expected)
    np.testing.assert_array_equal(given, expected)


def test_shape_arithmetic_passes_through() -> None:
    g = GraphBuilder("t")
    x = g.constant(np.array([3, 5], np.int64))
    row = g.add("reshape", x, attrs=ReshapeAttrs(exprs(1, 2)))
    wide = g.add("expand", row, attrs=ExpandAttrs(exprs(2, 2)))
    tiled = g.add("tile", wide, attrs=TileAttrs(exprs(1, 2)))
    turned = g.add("reverse", tiled, attrs=ReverseAttrs((1,)))
    flipped = g.add("transpose", turned, attrs=TransposeAttrs((1, 0)))
    assert g.type(flipped).dtype == I64
    assert g.symbolic_value(flipped).tolist() == [[const(v)] * 2 for v in (5, 3, 5, 3)]


def test_a_value_of_unknown_size_is_not_tracked() -> None:
    g = GraphBuilder("t")
    x = g.constant(np.array([3], np.int64))
    assert g.symbolic_value(g.add("expand", x, attrs=ExpandAttrs(exprs("N")))) is None
    assert g.symbolic_value(g.add("tile", x, attrs=TileAttrs(exprs("N")))) is None
