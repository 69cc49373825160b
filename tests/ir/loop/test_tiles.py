from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import VerifyError
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func, print_stmt
from tilewright.ir.loop.tiles import expand_tile
from tilewright.ir.loop.walk import buffers


def run(params: str, tile: str, **arrays: np.ndarray) -> None:
    run_func(parse_func(f"func @f({params}) {{ {tile} }}"), arrays)


def test_fill():
    c = np.ones((4, 6), np.int32)
    run("out C: i32[4, 6]", "tile fill C[1 : 2, 2 : 3]", C=c)
    expected = np.ones((4, 6), np.int32)
    expected[1:3, 2:5] = 0
    np.testing.assert_array_equal(c, expected)


def test_copy_matches_the_long_dimensions_and_converts():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    y = np.zeros((5, 4), np.float64)
    tile = "tile copy y[1 : 3, 0 : 4] <- x[1, 0 : 3, 0 : 4]"
    run("x: f32[2, 3, 4], out y: f64[5, 4]", tile, x=x, y=y)
    np.testing.assert_array_equal(y[1:4], x[1])
    assert (y[0] == 0).all()


def test_padded_copies_read_zeros_outside():
    x = np.arange(1, 21, dtype=np.float32).reshape(4, 5)
    y = np.ones((3, 4), np.float32)
    run(
        "x: f32[4, 5], out y: f32[3, 4]",
        "tile copy.padded y[0 : 3, 0 : 4] <- x[2 : 3, 3 : 4]",
        x=x,
        y=y,
    )
    expected = np.zeros((3, 4), np.float32)
    expected[:2, :2] = x[2:, 3:]
    np.testing.assert_array_equal(y, expected)


def test_padded_copies_of_shorter_sources_end_in_zeros():
    x = np.arange(1, 21, dtype=np.float32)
    for count in (0, 1):
        y = np.ones(6, np.float32)
        tile = f"tile copy.padded y[2 : 1] <- x[7 : {count}]"
        run("x: f32[20], out y: f32[6]", tile, x=x, y=y)
        np.testing.assert_array_equal(y, [1, 1, x[7] * count, 1, 1, 1])


def test_mma_adds_a_product_in_the_type_of_its_target():
    rng = np.random.default_rng(0)
    a = rng.integers(-100, 100, (3, 4)).astype(np.int8)
    b = rng.integers(-100, 100, (2, 4, 5)).astype(np.int8)
    c = np.ones((3, 5), np.int32)
    tile = "tile mma C[0 : 3, 0 : 5] <- A[0 : 3, 0 : 4], B[1, 0 : 4, 0 : 5]"
    run("A: i8[3, 4], B: i8[2, 4, 5], out C: i32[3, 5]", tile, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, 1 + a.astype(np.int32) @ b[1].astype(np.int32))


def test_the_text_of_an_expansion(golden):
    tile = "tile mma C[i : 16, 0 : 8] <- A[i : 16, 0 : 4], B[0 : 4, 0 : 8]"
    func = parse_func(f"func @f(A: f32[32, 4], B: f32[4, 8], out C: f32[32, 8]) {{ {tile} }}")
    golden(print_stmt(expand_tile(func.body, buffers(func), "C.tile")))


@for_each(
    "tile",
    [
        "tile copy C[0 : 2, 0 : 3] <- A[0 : 3, 0 : 2]",
        "tile copy C[0 : 2, 0 : 3]",
        "tile mma C[0 : 2, 0 : 2] <- A[0 : 2, 0 : 3], A[0 : 2, 0 : 2]",
        "tile mma C[0 : 2, 0 : 2] <- A[0 : 2, 0 : 3]",
        "tile mma C[0 : 2, 0 : 2] <- v[0 : 2], A[0 : 2, 0 : 2]",
        "tile mma.packed C[0 : 2, 0 : 2] <- A[0 : 2, 0 : 2], A[0 : 2, 0 : 2]",
    ],
)
def test_tiles_that_do_not_fit(tile):
    func = parse_func(f"func @f(A: f32[4, 4], v: f32[4], out C: f32[4, 4]) {{ {tile} }}")
    with pytest.raises(VerifyError, match="tile"):
        expand_tile(func.body, buffers(func))


def test_tiles_without_a_meaning():
    func = parse_func("func @f(A: f32[4], out C: f32[4]) { tile map C[0 : 4] <- A[0 : 4] }")
    with pytest.raises(VerifyError, match="takes 0 sources"):
        expand_tile(func.body, buffers(func))


@for_each(
    "tile",
    [
        "map.sqrt C[0 : 4] <- A[0 : 4]",
        "map.mul C[0 : 4] <- A[0 : 4], B[1, 0 : 4]",
        "reduce.max C[0 : 4] <- D[0 : 4, 0 : 3]",
        "dot C[0 : 4] <- E[0 : 3], D[0 : 4, 0 : 3]",
    ],
)
def test_map_reduce_and_dot(tile):
    func = parse_func(
        "func @f(A: f32[4], B: f32[2, 4], D: f32[4, 3], E: f32[3], out C: f32[4]) "
        f"{{ tile {tile} }}"
    )
    rng = np.random.default_rng(0)
    a, b, d, e, c = (rng.random(shape, dtype=np.float32) for shape in (4, (2, 4), (4, 3), 3, 4))
    results = {
        "map.sqrt": np.sqrt(a),
        "map.mul": a * b[1],
        "reduce.max": np.maximum(c, d.max(axis=1)),
        "dot": c + d @ e,
    }
    got = c.copy()
    run_func(func, {"A": a, "B": b, "D": d, "E": e, "C": got}, {})
    np.testing.assert_allclose(got, results[tile.split()[0]], rtol=1e-6)


@for_each("group", [2, 4])
def test_a_packed_matrix_has_groups_of_rows_side_by_side(group):
    rng = np.random.default_rng(group)
    a, b = rng.random((6, 16), np.float32), rng.random((8, 5), np.float32)
    packed = b.reshape(8 // group, group, 5).transpose(0, 2, 1).copy()
    c = np.ones((2, 3, 5), np.float32)
    right = f"B[0 : {8 // group}, 0 : 5, 0 : {group}]"
    tile = f"tile mma.packed C[1, 0 : 3, 0 : 5] <- A[2 : 3, 4 : 8], {right}"
    params = f"A: f32[6, 16], B: f32[{8 // group}, 5, {group}], out C: f32[2, 3, 5]"
    run(params, tile, A=a, B=packed, C=c)
    np.testing.assert_allclose(c[1], 1 + a[2:5, 4:12] @ b, rtol=1e-6)
    assert (c[0] == 1).all()
