"""Strided stores that together fill a range become contiguous; all else stays."""

from __future__ import annotations

import pytest

from tests.finalize.cpu.rewritten_loads import text_after
from tilewright.finalize.cpu.interleave_stores import interleave_stores
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func


def _func(*stores: str) -> Func:
    body = "\n".join(stores)
    return parse_func(
        f"func @f(a: f32[100], out c: f32[100]) {{ for i in serial(1) {{ {body} }} }}"
    )


def _strands(stride: int, lanes: int) -> list[str]:
    return [
        f"c[ramp(i * 64 + {n}, {stride}, {lanes})] = a[ramp(i + {n * lanes}, 1, {lanes})] + 1.0"
        for n in range(stride)
    ]


@pytest.mark.parametrize(("stride", "lanes"), [(2, 16), (2, 14), (2, 3), (4, 8), (4, 5)])
def test_strands_are_interleaved(stride: int, lanes: int) -> None:
    text = text_after(interleave_stores, _func(*_strands(stride, lanes)), 100)
    assert f"c[ramp(i * 64, 1, {lanes})] =" in text
    assert f", {stride}, {lanes})" not in text


def test_what_comes_before_and_after_stays() -> None:
    around = ["c[90] = a[1]", *_strands(2, 8), "c[91] = a[2]", *_strands(4, 4)]
    text = text_after(interleave_stores, _func(*around), 100)
    assert "c.strands0" in text
    assert "c.strands1" in text


@pytest.mark.parametrize(
    "stores",
    [
        _strands(2, 8)[:1],
        _strands(2, 8)[::-1],
        _strands(3, 8),
        [_strands(2, 8)[0], _strands(2, 4)[1]],
        [s.replace("a[", "c[") for s in _strands(2, 8)],
        [s.replace("8)]", "8) ? ramp(0, 1, 8) < 5]", 1) for s in _strands(2, 8)],
        [_strands(2, 8)[0], "c[99] = a[0]", _strands(2, 8)[1]],
    ],
)
def test_others_stay(stores: list[str]) -> None:
    func = _func(*stores)
    assert print_func(interleave_stores(func)) == print_func(func)
