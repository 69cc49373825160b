"""Squares of strided vectors are loaded by rows; all else stays, and so does the meaning."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.native_func import both
from tests.for_each import for_each
from tilewright.finalize.cpu.transpose_loads import transpose_loads
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func


def _func(offsets: list[int], lanes: int, dtype: str = "f32", source: str = "a") -> Func:
    """Row `n` of the result is every 40th element from an offset on, and one more."""
    stores = "\n".join(
        f"c[ramp({lanes * n}, 1, {lanes})] = {source}[ramp(i + {o}, 40, {lanes})] + b[0]"
        for n, o in enumerate(offsets)
    )
    return parse_func(
        f"""
        func @f(a: {dtype}[1000], b: {dtype}[1], out c: {dtype}[1000]) {{
          for i in serial(2) {{ {stores} }}
        }}
        """
    )


def _check(func: Func, dtype: type = np.float32) -> None:
    verify_func(func)
    rng = np.random.default_rng(0)
    arrays = {n: (rng.random(s) * 100).astype(dtype) for n, s in (("a", 1000), ("b", 1))}
    found, expected = both(func, {**arrays, "c": np.zeros(1000, dtype)})
    np.testing.assert_array_equal(found["c"], expected["c"])


@for_each("lanes", [2, 4, 8, 16])
@for_each(("name", "dtype"), [("f32", np.float32), ("i8", np.int8)])
def test_a_square(lanes: int, name: str, dtype: type) -> None:
    func = transpose_loads(_func(list(range(3, 3 + lanes)), lanes, name))
    text = print_func(func)
    assert "ramp(i + 3, 40" not in text
    assert text.count("a.rows0[") > lanes
    assert text.count("= a[") == lanes
    _check(func, dtype)


@for_each("columns", [2, 3, 4, 5, 7, 8, 9, 15])
@for_each(("name", "dtype"), [("f32", np.float32), ("i8", np.int8)])
def test_short_rows_share_vectors(columns: int, name: str, dtype: type) -> None:
    func = transpose_loads(_func(list(range(columns)), 16, name))
    text = print_func(func)
    width = 1 << (columns - 1).bit_length()
    assert f"alloc a.rows0: {name}[{16 * width}]" in text
    assert "40, 16)" not in text
    _check(func, dtype)


@for_each("stride", [5, 40])
def test_only_the_row_that_ends_behind_the_square_is_masked(stride: int) -> None:
    stores = "\n".join(f"c[ramp({8 * n}, 1, 8)] = a[ramp(i + {n}, {stride}, 8)]" for n in range(3))
    func = parse_func(
        f"""
        func @f(a: f32[1000], b: f32[1], out c: f32[1000]) {{ for i in serial(2) {{ {stores} }} }}
        """
    )
    after = transpose_loads(func)
    assert print_func(after).count(" ? ") == 1
    _check(after)


def test_several_squares_in_any_order() -> None:
    func = transpose_loads(_func([5, 4, 14, 6, 7, 12, 30, 13, 15], 4))
    text = print_func(func)
    assert "alloc a.rows1" in text
    assert "a[ramp(i + 30, 40, 4)]" in text
    assert text.index("a.rows0[ramp(0") < text.index("c[") < text.index("a.rows1[ramp(0")
    _check(func)


@for_each("offsets", [[1], [1, 3, 5], [0, 2, 4, 6]])
def test_what_is_no_square_stays(offsets: list[int]) -> None:
    func = _func(offsets, 4)
    assert print_func(transpose_loads(func)) == print_func(func)


@pytest.mark.parametrize(
    ("lanes", "stride", "columns", "by_rows"),
    [(16, 2, 5, False), (16, 2, 16, False), (16, 4, 4, False), (16, 4, 16, True), (4, 3, 4, True)],
)
def test_columns_a_few_elements_apart_are_picked_where_that_takes_less(
    lanes: int, stride: int, columns: int, by_rows: bool
) -> None:
    stores = "\n".join(
        f"c[ramp({lanes * n}, 1, {lanes})] = a[ramp(i + {n}, {stride}, {lanes})] + b[0]"
        for n in range(columns)
    )
    func = parse_func(
        f"""
        func @f(a: f32[1000], b: f32[1], out c: f32[1000]) {{ for i in serial(2) {{ {stores} }} }}
        """
    )
    after = transpose_loads(func)
    assert ("alloc a.rows0" in print_func(after)) == by_rows
    _check(after)


def test_two_masked_columns_a_few_elements_apart_are_picked() -> None:
    stores = "\n".join(
        f"c[ramp({8 * n}, 1, 8)] = a[ramp({n}, 2, 8) ? ramp(i * 4, 1, 8) < 6]" for n in range(2)
    )
    func = parse_func(
        f"""
        func @f(a: f32[1000], b: f32[1], out c: f32[1000]) {{ for i in serial(2) {{ {stores} }} }}
        """
    )
    assert print_func(transpose_loads(func)) == print_func(func)


def test_what_is_written_in_between_stays() -> None:
    func = _func([0, 1, 2, 3], 4, source="c")
    assert print_func(transpose_loads(func)) == print_func(func)
    _check(func)


def test_one_condition_for_all_lanes() -> None:
    stores = "\n".join(f"c[ramp({4 * n}, 1, 4)] = a[ramp({n}, 9, 4) ? i < 1]" for n in range(4))
    func = parse_func(
        f"""
        func @f(a: f32[1000], b: f32[1], out c: f32[1000]) {{ for i in serial(2) {{ {stores} }} }}
        """
    )
    after = transpose_loads(func)
    assert "a[ramp(27, 1, 4) ? i < 1]" in print_func(after)
    _check(after)


def test_a_condition_of_each_lane_is_one_of_a_row() -> None:
    stores = "\n".join(
        f"c[ramp({4 * n}, 1, 4)] = a[ramp({n}, 9, 4) ? ramp(i * 4, 1, 4) < 6]" for n in range(4)
    )
    func = parse_func(
        f"""
        func @f(a: f32[1000], b: f32[1], out c: f32[1000]) {{ for i in serial(2) {{ {stores} }} }}
        """
    )
    after = transpose_loads(func)
    assert "a[ramp(27, 1, 4) ? i < 1]" in print_func(after)
    _check(after)


@pytest.mark.parametrize("columns", [5, 7])
def test_the_last_columns_may_be_missing(columns: int) -> None:
    func = transpose_loads(_func(list(range(3, 3 + columns)), 8))
    text = print_func(func)
    assert "a[ramp(i + 43, 1, 8)]" in text
    assert f"a[ramp(i + 283, 1, 8) ? ramp(0, 1, 8) < {columns}]" in text
    _check(func)


def test_rows_whose_length_is_not_known() -> None:
    stores = "".join(
        f"c[ramp({4 * n}, 1, 4)] = a[N * i + N * ramp(0, 1, 4) + {n}]\n" for n in range(4)
    )
    func = transpose_loads(
        parse_func(
            f"func @f(a: f32[N * 8], out c: f32[16]) {{ for i in serial(2) {{ {stores} }} }}"
        )
    )
    assert "a[ramp(N * 2 + N * i, 1, 4)]" in print_func(func)
    a = np.arange(48, dtype=np.float32)
    found, expected = both(func, {"a": a, "c": np.zeros(16, np.float32)}, {"N": 6})
    np.testing.assert_array_equal(found["c"], expected["c"])
    np.testing.assert_array_equal(found["c"], a.reshape(8, 6)[1:5, :4].T.ravel())
