from __future__ import annotations

import re

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.to_python import compile_func
from tilewright.ir.loop.text import parse_func


def test_more_loops_than_python_nests():
    loops = "".join(f"for i{n} in serial(1) {{ " for n in range(50))
    source = f"func @f(out y: f32[N]) {{ {loops} for k in serial(N) {{ y[k] = 2.0 }} {'}' * 50} }}"
    y = np.zeros(3, np.float32)
    compile_func(parse_func(source)).run({"y": y}, {"N": 3})
    assert (y == 2).all()


def test_it_says_which_sizes_it_needs():
    source = "func @f(out y: i64[N]) { for i in serial(M) { y[i] = i + K } }"
    assert compile_func(parse_func(source)).sizes == ("M", "K")


def test_one_iterator_name_in_two_blocks():
    source = """
    func @f(out y: i64[4], out z: i64[4]) {
      for i in serial(4) { block "y" [v: S(4) = i] writes y[v] { y[v] = v } }
      for j in serial(4) { block "z" [v: S(4) = 3 - j] writes z[v] { z[v] = v * 2 } }
    }"""
    y, z = np.zeros(4, np.int64), np.zeros(4, np.int64)
    compile_func(parse_func(source)).run({"y": y, "z": z}, {})
    assert (y == np.arange(4)).all()
    assert (z == np.arange(4) * 2).all()


def test_init_runs_where_every_reduction_iterator_is_zero():
    source = """
    func @f(out y: i64[2]) {
      for i, j, k in serial(2, 3, 2) {
        block "y" [v: S(2) = i, r: R(3) = j, s: R(2) = k] writes y[v]
          init { y[v] = 100 } { y[v] += 1 }
      }
    }"""
    y = np.zeros(2, np.int64)
    compile_func(parse_func(source)).run({"y": y}, {})
    assert (y == 106).all()


def test_an_empty_branch():
    source = "func @f(out y: f32[1]) { if 1 < 2 { } else { y[0] = 1.0 } }"
    y = np.zeros(1, np.float32)
    compile_func(parse_func(source)).run({"y": y}, {})
    assert y[0] == 0


def test_neighbours_are_read_before_they_are_overwritten():
    source = """
    func @f(out y: i64[2, 6]) {
      y[1, ramp(0, 1, 4)] = y[0, ramp(2, 1, 4)] + y[0, ramp(0, 1, 4)]
      y[0, ramp(1, 1, 4)] = y[0, ramp(0, 1, 4)]
    }"""
    y = np.arange(12).reshape(2, 6)
    compile_func(parse_func(source)).run({"y": y}, {})
    assert y.tolist() == [[0, 0, 1, 2, 3, 5], [2, 4, 6, 8, 10, 11]]


@for_each(("index", "wrong"), [("1, ramp(K - 4, 1, 4)", "1, -1"), ("1, ramp(K, 1, 4)", "1, 6")])
def test_the_first_neighbour_outside_is_named(index: str, wrong: str):
    source = f"func @f(out y: i64[2, 6]) {{ y[{index}] = ramp(0, 1, 4) }}"
    y = np.zeros((2, 6), np.int64)
    with pytest.raises(ExecutionError, match=re.escape(f"y[{wrong}] is outside")):
        compile_func(parse_func(source)).run({"y": y}, {"K": 3})
    assert not y.any()
