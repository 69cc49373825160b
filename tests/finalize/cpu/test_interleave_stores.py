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


def _masked(
    strands: list[str], *counts: object, also: tuple[str, ...] = ("i < 1",) * 4
) -> list[str]:
    """The first lanes of each store alone, under a condition on all of them."""
    stores = []
    for store, count, condition in zip(strands, counts, also, strict=False):
        at, value = store.split("] = ")
        lanes = at.rsplit(" ", 1)[1][:-1]
        stores.append(f"{at} ? ramp(0, 1, {lanes}) < {count} & {condition}] = {value}")
    return stores


@pytest.mark.parametrize(
    ("stride", "lanes"), [(2, 16), (2, 14), (2, 3), (3, 8), (3, 5), (4, 8), (4, 5)]
)
def test_strands_are_interleaved(stride: int, lanes: int) -> None:
    text = text_after(interleave_stores, _func(*_strands(stride, lanes)), 100)
    assert f"c[ramp(i * 64, 1, {lanes})] =" in text
    assert f", {stride}, {lanes})" not in text


@pytest.mark.parametrize(
    ("stride", "counts"), [(2, (5, 5)), (2, (5, 4)), (2, (1, 0)), (3, (8, 7, 7)), (4, (3, 3, 2, 2))]
)
def test_the_first_elements_are_stored(stride: int, counts: tuple[int, ...]) -> None:
    stored, strands = sum(counts), _masked(_strands(stride, 8), *counts)
    text = text_after(interleave_stores, _func(*strands), 100)
    assert f", {stride}, 8)" not in text
    assert text.count("c[ramp(") == -(-stored // 8)
    assert stored % 8 == 0 or f"< {stored % 8}" in text


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
        _strands(5, 8),
        [_strands(2, 8)[0], _strands(2, 4)[1]],
        [s.replace("a[", "c[") for s in _strands(2, 8)],
        _masked(_strands(2, 8), 3, 5),
        _masked(_strands(2, 8), 5, 3),
        _masked(_strands(2, 8), "i + 5", "i + 5"),
        [*_masked(_strands(2, 8), 8)[:1], _strands(2, 8)[1]],
        _masked(_strands(2, 8), 8, 8, also=("i < 1", "i < 2")),
        [_strands(2, 8)[0], "c[99] = a[0]", _strands(2, 8)[1]],
    ],
)
def test_others_stay(stores: list[str]) -> None:
    func = _func(*stores)
    assert print_func(interleave_stores(func)) == print_func(func)
