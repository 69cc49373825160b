"""Vectors that repeat elements are picked from one load; all else stays, as does the meaning."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.native_func import both
from tests.finalize.cpu.rewritten_loads import text_after
from tilewright.finalize.cpu.repeat_loads import repeat_loads
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func


def _func(index: str, mask: str = "") -> Func:
    given = f" ? {mask}" if mask else ""
    return parse_func(
        f"""
        func @f(a: f32[100], out c: f32[100]) {{
          for i in serial(3) {{ c[ramp(i * 16, 1, 16){given}] = a[{index}{given}] }}
        }}
        """
    )


def _check(func: Func) -> str:
    return text_after(repeat_loads, func, 100)


@pytest.mark.parametrize(
    ("index", "run"),
    [
        ("i * 8 + ramp(0, 1, 16) // 2", "a[ramp(i * 8, 1, 8)]"),
        ("i + (ramp(0, 1, 16) + 1) // 3", "a[ramp(i, 1, 6)]"),
        ("i + ramp(0, 1, 16) % 4 + 5", "a[ramp(i + 5, 1, 4)]"),
        ("i + min(ramp(0, 1, 16), 6)", "a[ramp(i, 1, 7)]"),
        ("i - ramp(0, 1, 16) // 2 + 20", "a[ramp(i + 13, 1, 8)]"),
    ],
)
def test_a_run_is_loaded_once(index: str, run: str) -> None:
    assert run in _check(_func(index))


@pytest.mark.parametrize("lanes", [1, 2, 7, 15, 16])
def test_masked_lanes_are_not_read(lanes: int) -> None:
    text = _check(_func("i * 8 + ramp(0, 1, 16) // 2", f"ramp(0, 1, 16) < {lanes}"))
    assert "a[ramp(i * 8, 1, 8) ? shuffle(" in text


def test_what_ends_at_the_last_element_stays_inside() -> None:
    """The run is as long as the elements of lanes that are not masked."""
    func = parse_func(
        """
        func @f(a: f32[3], out c: f32[5]) {
          c[ramp(0, 1, 16) ? ramp(0, 1, 16) < 5] = a[ramp(0, 1, 16) // 2 ? ramp(0, 1, 16) < 5]
        }
        """
    )
    found, _ = both(repeat_loads(func), {"a": np.arange(3, dtype="f4"), "c": np.zeros(5, "f4")})
    np.testing.assert_array_equal(found["c"], [0, 0, 1, 1, 2])


@pytest.mark.parametrize(
    ("index", "mask"),
    [
        ("ramp(i, 1, 16)", ""),
        ("ramp(i, 2, 16)", ""),
        ("i + ramp(i, 1, 16) // 2", ""),
        ("i * 8 + ramp(0, 1, 16) // 2", "3 < ramp(0, 1, 16)"),
        ("i + ramp(0, 1, 16) % 4", "ramp(0, 1, 16) < 5"),
    ],
)
def test_others_stay(index: str, mask: str) -> None:
    func = _func(index, mask)
    assert print_func(repeat_loads(func)) == print_func(func)
