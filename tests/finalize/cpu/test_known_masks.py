"""Masks that are known disappear; others stay, and so does the meaning."""

from __future__ import annotations

import pytest

from tests.finalize.cpu.rewritten_loads import text_after
from tilewright.finalize.cpu.known_masks import known_masks
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func


def _func(index: str, mask: str) -> Func:
    return parse_func(
        f"""
        func @f(a: f32[40], out c: f32[40]) {{
          for i in serial(3) {{
            c[ramp(i * 8, 1, 8) ? {mask}] = a[{index} ? {mask}]
            c[ramp(24, 1, 8)] = a[{index} ? {mask}]
          }}
        }}
        """
    )


def _check(func: Func) -> str:
    return text_after(known_masks, func, 40)


@pytest.mark.parametrize("index", ["ramp(i, 1, 8)", "ramp(i, 3, 8)", "i + ramp(0, 1, 8) % 3"])
def test_where_all_lanes_are_active_there_is_no_mask(index: str) -> None:
    assert "?" not in _check(_func(index, "8 + ramp(0, 1, 8) < 16"))


@pytest.mark.parametrize("active", [2, 3, 7])
def test_a_strided_load_has_the_active_lanes(active: int) -> None:
    text = _check(_func("ramp(i, 2, 8)", f"ramp(0, 1, 8) < {active}"))
    assert f"shuffle(a[ramp(i, 2, {active})]" in text


@pytest.mark.parametrize("first", [1, 2, 6])
def test_the_active_lanes_need_not_be_the_first(first: int) -> None:
    text = _check(_func("ramp(i, 2, 8)", f"{first - 1} < ramp(0, 1, 8)"))
    assert f"shuffle(a[ramp(i + {2 * first}, 2, {8 - first})]" in text


def test_one_active_lane_is_a_scalar() -> None:
    text = _check(_func("ramp(i, 2, 8)", "6 < ramp(0, 1, 8)"))
    assert "shuffle(broadcast(a[i + 14], 2)" in text


def test_no_active_lane_is_zeros() -> None:
    text = _check(_func("ramp(i, 2, 8)", "ramp(0, 1, 8) < 0"))
    assert "= broadcast(0.0, 8)" in text


@pytest.mark.parametrize(
    ("index", "mask"),
    [
        ("ramp(i, 1, 8)", "ramp(0, 1, 8) < 3"),
        ("ramp(i, 2, 8)", "ramp(0, 1, 8) < i"),
        ("ramp(i, 2, 8)", "i < 2"),
    ],
)
def test_others_stay(index: str, mask: str) -> None:
    func = _func(index, mask)
    assert print_func(known_masks(func)) == print_func(func)
