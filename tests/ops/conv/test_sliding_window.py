from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.tensor.build import Builder
from tilewright.ir.types import tensor
from tilewright.ops.conv.sliding_window import (
    WindowAttrs,
    arrange,
    check_window,
    padded,
    parts,
    tap,
    window_count,
)
from tilewright.ops.shape.assumptions import assumptions


def window(stride: int, before: int, after: int, dilation: int) -> WindowAttrs:
    return WindowAttrs((stride,), (before, after), (dilation,))


@for_each("size", [1, 2, 5, 7, 8, 13])
@for_each("stride", [1, 2, 3])
@for_each(("before", "after"), [(0, 0), (1, 2), (2, 0)])
@for_each(("kernel", "dilation"), [(1, 1), (3, 1), (2, 3)])
def test_window_count(
    size: int, stride: int, before: int, after: int, kernel: int, dilation: int
) -> None:
    reach = (kernel - 1) * dilation + 1
    starts = range(0, size + before + after - reach + 1, stride)
    if size + before + after < reach:
        return
    attrs = window(stride, before, after, dilation)
    found = window_count("conv", const(size), const(kernel), attrs, 0)
    assert as_int(found) == len(starts)
    rounded = as_int(window_count("pool", const(size), const(kernel), attrs, 0, ceil=True))
    # One more window if elements are left over, but none that starts behind the input.
    last = starts[-1] + stride * (starts[-1] + reach < size + before + after)
    assert rounded == len([p for p in range(0, last + 1, stride) if p < size + before])


def test_same_size_is_the_same_expression() -> None:
    n = Var("N")
    assert window_count("conv", n, const(3), window(1, 1, 1, 1), 0) is n
    halved = {
        window_count("conv", n, const(3), window(2, 1, 1, 1), 0),
        window_count("conv", n, const(1), window(2, 0, 0, 1), 0),
    }
    assert len(halved) == 1


def test_windows_larger_than_an_open_size_are_checked_in_a_run() -> None:
    n = Var("N")
    with assumptions() as found:
        window_count("conv", n, const(3), window(1, 1, 1, 1), 0)
        window_count("conv", n, const(2), window(2, 0, 0, 1), 0)
    assert not found, "these have windows at any size"
    with assumptions() as found:
        count = window_count("conv", n, const(3), window(1, 0, 0, 1), 0)
    assert list(found) == [simplify(const(0) <= count)]
    with pytest.raises(TypeCheckError, match="larger than the padded input"):
        window_count("conv", const(1), const(3), window(1, 0, 0, 1), 0)


def test_indices_round_trip() -> None:
    n, c, h, w = (Var(v) for v in "nchw")
    assert arrange("channels_first", n, c, (h, w)) == (n, c, h, w)
    assert arrange("channels_last", n, c, (h, w)) == (n, h, w, c)
    for layout in ("channels_first", "channels_last"):
        assert parts(layout, arrange(layout, n, c, (h, w))) == (n, c, (h, w))


def test_tap() -> None:
    attrs = WindowAttrs((2, 1), (0, 0, 0, 0), (1, 3))
    found = tap(attrs, (const(4), const(5)), (const(1), const(2)))
    assert [as_int(e) for e in found] == [9, 11]


def test_padded_is_the_input_where_nothing_is_to_pad() -> None:
    b = Builder("pool")
    x = b.input("x", F32, (1, 2, 5))
    assert padded(b, window(1, 0, 0, 1), x, (const(0),), const(0, F32)) is x
    assert not b.stages
    assert padded(b, window(1, 1, 0, 1), x, (const(2),), const(0, F32)).shape[2] is const(8)


@for_each(
    ("attrs", "message"),
    [
        (WindowAttrs((1,), (0, 0), (1,), "NCHW"), "layout"),
        (WindowAttrs((1, 1), (0, 0, 0, 0), (1, 1)), "do not fit"),
        (WindowAttrs((1,), (0,), (1,)), "wrong length"),
        (WindowAttrs((1,), (0, 0), (1, 1)), "wrong length"),
        (WindowAttrs((0,), (0, 0), (1,)), "at least"),
        (WindowAttrs((1,), (-1, 0), (1,)), "at least"),
    ],
)
def test_refusals(attrs: WindowAttrs, message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        check_window("conv", attrs, tensor(F32, 1, 2, 5), 1)


def test_kernel_larger_than_the_input() -> None:
    with pytest.raises(TypeCheckError, match="larger than"):
        window_count("conv", const(2), const(5), window(1, 1, 0, 1), 0)
