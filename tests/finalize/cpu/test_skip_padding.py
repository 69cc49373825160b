"""Loops that only read padding are left out; sums stay the same."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.finalize.cpu.skip_padding import skip_padding
from tilewright.finalize.lower_blocks import lower_blocks
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func, If
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops, statements_in


def _conv(lines: int, line: int, taps: int, apart: int, rows: int, mark: str = "") -> Func:
    """A convolution of a padded image, `rows` pixels at a time, the last ones perhaps again."""
    pad = apart * (taps - 1) // 2
    high, wide, pixels = lines + 2 * pad, line + 2 * pad, lines * line
    at = f"min(t * {rows} + i, {pixels - 1})"
    read = f"p[{at} // {line} + {apart} * u, {at} % {line} + {apart} * v, c]"
    inside = f"{pad - 1} < y & y < {lines + pad} & {pad - 1} < z & z < {line + pad}"
    return parse_func(
        f"""
        func @f(x: f32[{lines}, {line}, 3], w: f32[{taps}, {taps}, 3], out s: f32[{pixels}]) {{
          alloc p: f32[{high}, {wide}, 3]
          for y in serial({high}) {{ for z in serial({wide}) {{ for d in serial(3) {{
            p[y, z, d] = x[y - {pad}, z - {pad}, d ? {inside}]
          }} }} }}
          for t in serial({-(-pixels // rows)}) {{
            alloc a: f32[{rows}]
            for j in serial({rows}) {{ a[j] = 0.0 }}
            for u in serial({taps}) {{ for v in serial({taps}) {{
              for c in serial(3){mark} {{
                for i in serial({rows}) {{ a[i] = a[i] + {read} * w[u, v, c] }}
              }}
            }} }}
            for k in serial({rows}) {{
              if t * {rows} + k < {pixels} {{ s[t * {rows} + k] = a[k] }}
            }}
          }}
        }}"""
    )


def _sums(func: Func, inputs: dict[str, np.ndarray], pixels: int) -> np.ndarray:
    s = np.zeros(pixels, np.float32)
    run_func(func, {**inputs, "s": s}, {})
    return s


def _skipped(func: Func) -> int:
    """How many conditions are around loops over channels."""
    found = (s for s in statements_in(func.body) if isinstance(s, If))
    return sum(any(loop.name == "c" for loop in loops(s.then)) for s in found)


@for_each("lines, line, taps, apart", [(6, 6, 3, 2), (5, 7, 3, 4), (4, 4, 5, 2), (3, 8, 5, 1)])
@for_each("rows", [1, 2, 3, 5])
def test_sums_are_the_same(lines: int, line: int, taps: int, apart: int, rows: int) -> None:
    func = _conv(lines, line, taps, apart, rows, " {skip_padding=1}")
    after = skip_padding(lower_blocks(func))
    verify_func(after)
    assert _skipped(after) == 1
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal((lines, line, 3), np.float32),
        "w": rng.standard_normal((taps, taps, 3), np.float32),
    }
    expected = _sums(func, inputs, lines * line)
    np.testing.assert_array_equal(_sums(after, inputs, lines * line), expected)


def test_taps_beyond_the_image_are_not_read() -> None:
    """Pixels that are two apart in an image of two by two are under one tap of nine."""
    inputs = {"x": np.ones((2, 2, 3), np.float32), "w": np.full((3, 3, 3), np.nan, np.float32)}
    inputs["w"][1, 1] = 1.0
    plain, marked = (_conv(2, 2, 3, 2, 1, mark) for mark in ("", " {skip_padding=1}"))
    assert np.isnan(_sums(plain, inputs, 4)).all()
    np.testing.assert_array_equal(_sums(skip_padding(marked), inputs, 4), 3.0)


def test_other_loops_stay() -> None:
    func = _conv(4, 4, 3, 2, 2)
    assert skip_padding(func) is func
