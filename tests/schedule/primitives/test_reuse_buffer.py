from __future__ import annotations

import pytest

from tests.schedule.programs import M, N, check_schedule, dense, func_of, refused, softmax
from tilewright.arith.expr import call
from tilewright.core.dtypes import F32
from tilewright.ir.loop.walk import buffers
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.schedule import Schedule


def test_rows() -> None:
    before = softmax()
    sch = Schedule(before)
    for block in ("s", "e", "m"):
        sch.compute_at(block, "y.i0")
    sch.parallel("y.i0")
    sch.reuse_buffer("e", "y")
    assert "e" not in buffers(sch.func)
    check_schedule(sch, before)


def test_rows_of_two_fused_symbolic_axes() -> None:
    b = Builder("f")
    x = b.input("x", F32, (M, N, 5))
    e = b.compute("e", (M, N, 5), lambda i, j, k: call("exp", x[i, j, k]))
    y = b.compute("y", (M, N, 5), lambda i, j, k: e[i, j, k] + e[i, j, k])
    before = program_func(b.program(y))
    sch = Schedule(before)
    sch.compute_at("e", sch.fuse("y.i0", "y.i1"))
    sch.reuse_buffer("e", "y")
    check_schedule(sch, before)


def test_nests_one_after_another() -> None:
    before = softmax()
    sch = Schedule(before)
    sch.reuse_buffer("e", "y")
    check_schedule(sch, before)


def test_single_elements() -> None:
    before = dense()
    sch = Schedule(before)
    sch.compute_at("add", "y.i1")
    sch.reuse_buffer("add", "y")
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(softmax())
    refused("reuse-buffer.allocation", sch.reuse_buffer, "x", "y")
    refused("reuse-buffer.shape", sch.reuse_buffer, "s", "y")


# Two blocks, `first` into the buffer e and `last` into y, and what stands between and around them.
PROGRAM = """
func @f(x: f32[4, 4], out y: f32[4, 4], out z: f32[4]) {{
  alloc e: f32[4, 4]
  for i in serial(4) {{
    for j in serial(4) {{
      block "first" [a: S(4) = {row}, b: S(4) = j] reads x[a, b] writes e[a, b]
        {where}
        {{ e[a, b] = x[a, b] }}
    }}
    {between}
    for k in serial(4) {{
      block "last" [a: S(4) = i, b: S(4) = k] reads e[a, {read}] writes y[a, b]
        {{ y[a, b] = e[a, {read}] * 2.0 }}
    }}
    {after}
  }}
}}
"""
READER = 'block "z" [a: S(4) = i] reads {0}[a, 0] writes z[a] {{ z[a] = {0}[a, 0] }}'


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("indices", {"read": "3 - b"}),
        ("order", {"after": READER.format("e")}),
        ("readers", {"after": READER.format("y")}),
        ("rows", {"row": "3 - i"}),
        ("rows", {"row": "0"}),
        ("rows", {"where": "where i < 2"}),
    ],
)
def test_what_is_overwritten_too_early_is_refused(code: str, parts: dict[str, str]) -> None:
    plain = {"row": "i", "where": "", "between": READER.format("e"), "read": "b", "after": ""}
    sch = Schedule(func_of(PROGRAM.format(**plain)))
    sch.reuse_buffer("e", "last")
    sch = Schedule(func_of(PROGRAM.format(**{**plain, "between": "", **parts})))
    refused(f"reuse-buffer.{code}", sch.reuse_buffer, "e", "last")
