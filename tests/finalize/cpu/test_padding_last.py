"""Iterations that only meet padding come last, without loads; sums stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.finalize.cpu.padding_last import padding_last
from tilewright.finalize.unroll import unroll
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func


def _rows(
    taps: int, pad: int, step: int = 1, element: str = "x[h * {s} + r - {p}, {m}] * w[r, t]"
) -> Func:
    """Sums over the rows of a window, two taps each, for an image of H lines."""
    inside = f"0 ? {pad - 1} < h * {step} + r & h * {step} + r < H + {pad}"
    value = element.format(s=step, p=pad, m=inside)
    return parse_func(
        f"""
        func @f(x: f32[H, 1], w: f32[{taps}, 2], out y: f32[L]) {{
          for h in serial(L) {{
            alloc c: f32[2] @register
            for a in unroll(2) {{ c[a] = 0.0 }}
            for r in serial({taps}) {{padding_last=1}} {{
              for i in unroll(2) {{ for t in unroll(2) {{ c[i] += {value} }} }}
            }}
            y[h] = c[0] + c[1]
          }}
        }}"""
    )


def _same(before: Func, after: Func, lines: int, count: int, taps: int, rtol: float = 0.0) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((lines, 1)).astype("f4")
    w = rng.standard_normal((taps, 2)).astype("f4")
    expected, found = np.ones(count, "f4"), np.zeros(count, "f4")
    for func, y in ((before, expected), (after, found)):
        run_func(func, {"x": x, "w": w, "y": y}, {"H": lines, "L": count})
    np.testing.assert_allclose(found, expected, rtol)


@pytest.mark.parametrize(("taps", "pad"), [(3, 1), (7, 3), (2, 1), (3, 2)])
@pytest.mark.parametrize("step", [1, 2])
def test_sums_are_the_same(taps: int, pad: int, step: int) -> None:
    before = _rows(taps, pad, step)
    after = padding_last(before)
    verify_func(after)
    for lines in range(1, 9):
        # Windows may lie beyond the image as a whole.
        for f in (after, unroll(after)):
            _same(before, f, lines, lines + 3, taps)


def test_weights_that_are_not_finite_still_make_nan_of_padding() -> None:
    before = _rows(3, 1)
    x, w = np.ones((2, 1), "f4"), np.full((3, 2), np.inf, "f4")
    found = np.zeros(2, "f4")
    run_func(padding_last(before), {"x": x, "w": w, "y": found}, {"H": 2, "L": 2})
    assert np.isnan(found).all()


def test_the_image_has_no_masks_and_the_padding_no_loads() -> None:
    text = print_func(padding_last(_rows(7, 3)))
    image, padding = text.split("for r.padding")
    assert "?" not in text.split("{", 1)[1]
    assert "x[" in image
    assert "x[" not in padding


def test_the_taps_of_padding_are_a_loop_around_the_sums() -> None:
    padding = print_func(padding_last(_rows(7, 3))).split("for r.padding")[1]
    assert "for t.padding in serial(2)" in padding
    assert padding.index("t.padding in serial") < padding.index("i.padding in unroll")


def test_a_choice_is_the_other_one_in_the_padding() -> None:
    inside = "0 < h * 1 + r & h * 1 + r < H + 1"
    before = _rows(3, 1, element=f"select({inside}, x[h * 1 + r - 1, {{m}}], 2.0) * w[r, t]")
    after = padding_last(before)
    assert "2.0 * w" in print_func(after)
    for lines in range(1, 5):
        _same(before, after, lines, lines, 3, rtol=1e-6)  # the terms come in another order


@pytest.mark.parametrize(
    "element",
    [
        "x[h + r - 1, {m}] * w[r, t] + x[h, 0]",  # another load reads on: still all masked ones
        "x[h + r - 1, 0 ? 0 < h + r] + x[h + r, 0 ? h + r < H]",  # no condition is that of both
        "x[h + r - 1, 0 ? 0 < h + r * r]",  # not linear
        "w[r, t]",  # no mask
    ],
)
def test_what_is_split_keeps_its_meaning(element: str) -> None:
    before = _rows(3, 1, element=element)
    after = padding_last(before)
    assert ("r.padding" in print_func(after)) == ("{m}" in element)
    for lines in range(2, 5):
        _same(before, after, lines, lines - 1, 3, rtol=1e-6)
