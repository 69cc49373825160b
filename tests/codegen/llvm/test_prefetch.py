"""Prefetches ahead of strided rows: the same results, one instruction for each cache line."""

from __future__ import annotations

import numpy as np

from tests.codegen.native_func import check_native_func, llvm_text
from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.arith.simplify import simplify
from tilewright.codegen.llvm.prefetch import behind_rows
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import find_loop

ROWS = """
func @f(x: f32[2000], out y: f32[32]) {{
  for k in serial(20) {{prefetch=3}} {{
    {body}
  }}
}}"""
VECTOR = "y[ramp({0}, 1, {1})] = y[ramp({0}, 1, {1})] + x[ramp(k * 100 + {0}, 1, {1})]"


def _rows(*vectors: tuple[int, int]) -> str:
    return ROWS.format(body="\n".join(VECTOR.format(begin, lanes) for begin, lanes in vectors))


@for_each(
    ("vectors", "lines"),
    [
        ([(0, 16)], 2),  # where it begins, and where it ends if it is not aligned
        ([(0, 16), (16, 16)], 3),
        ([(0, 4), (4, 4), (8, 4), (12, 4)], 2),
    ],
)
def test_every_line_is_prefetched_once(vectors: list[tuple[int, int]], lines: int) -> None:
    text = llvm_text(parse_func(_rows(*vectors)))
    assert text.count("call void @llvm.prefetch.p0") == lines
    assert f"{3 * 100}" in text


def test_nothing_else_changes() -> None:
    given = np.arange(2000, dtype="f4")
    check_native_func(parse_func(_rows((0, 16), (16, 16))), {"x": given, "y": np.zeros(32, "f4")})


def test_scalars_and_what_does_not_move_are_left_alone() -> None:
    body = "y[0] = y[0] + x[k * 100]\n y[ramp(8, 1, 8)] = x[ramp(0, 1, 8)]"
    assert "prefetch" not in llvm_text(parse_func(ROWS.format(body=body)))


ADDED = """
func @f(x: f32[4000], out y: f32[32]) {{
  for t in serial(3) {{
    for k in serial({length}) {{prefetch_rows=1}} {{
      {body}
    }}
  }}
}}"""


def _added(length: int, *places: str) -> str:
    body = "\n".join(f"y[{n}] = y[{n}] + x[{place}]" for n, place in enumerate(places))
    return ADDED.format(length=length, body=body)


def test_rows_behind_those_of_a_tile_are_prefetched_by_equal_parts() -> None:
    func = parse_func(_added(20, "t * 60 + k", "t * 60 + k + 20", "t * 60 + k + 40"))
    ((buffer, _, place),) = behind_rows(find_loop(func, "k"))
    assert buffer == "x"
    assert place is simplify(Var("t") * 60 + Var("k") * 3 + 60)
    assert llvm_text(func).count("call void @llvm.prefetch.p0") == 1
    given = np.arange(4000, dtype="f4")
    check_native_func(func, {"x": given, "y": np.zeros(32, "f4")})


@for_each(
    "places",
    [
        ("t * 60 + k", "t * 60 + k + 30"),  # other columns lie between the rows
        ("t * 60 + k * 2", "t * 60 + k * 2 + 40"),
        ("t * 60", "t * 60 + 20"),
        ("t * 60 + k", "min(t * 60 + k + 20, 100)"),
    ],
)
def test_rows_that_do_not_follow_each_other_are_left_alone(places: tuple[str, ...]) -> None:
    assert "prefetch" not in llvm_text(parse_func(_added(20, *places)))
