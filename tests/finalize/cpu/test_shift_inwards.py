from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.differential.native import assert_same_on_threads, check_native, compare
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.finalize.cpu.loop_partition import loop_partition
from tilewright.finalize.cpu.shift_inwards import shift_inwards
from tilewright.finalize.unroll import unroll
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.pool import PoolAttrs
from tilewright.ops.graph_builder import GraphBuilder


def _line(rows: int, limit: str = "N") -> Func:
    """What is added to `y` shows how often a row is stored."""
    return parse_func(
        f"""
        func @f(x: f32[N, 4], out y: f32[N]) {{
          for o in serial((N + {rows - 1}) // {rows}) {{partition=1}} {{
            alloc c: f32[{rows}] @register
            for a in unroll({rows}) {{ c[a] = 0.0 }}
            for k in serial(4) {{
              for i in unroll({rows}) {{shift_inwards=1}} {{
                c[i] += x[min(o * {rows} + i, N - 1), k] + x[o * {rows} + i, k ? o * {rows} + i < N]
              }}
            }}
            for j in unroll({rows}) {{shift_inwards=1}} {{
              if o * {rows} + j < {limit} {{ y[o * {rows} + j] += c[j] }}
            }}
          }}
        }}"""
    )


@pytest.mark.parametrize("rows", [1, 2, 5, 7])
@pytest.mark.parametrize("limit", ["N", "N - 3"])
def test_every_row_is_stored_once(rows: int, limit: str) -> None:
    before = _line(rows, limit)
    after = shift_inwards(before)
    verify_func(after)
    for n in range(3 if limit != "N" else 0, 17):
        x = np.arange(n * 4, dtype="f4").reshape(n, 4)
        for f in (after, loop_partition(after), unroll(loop_partition(after))):
            expected, found = np.ones(n, "f4"), np.ones(n, "f4")
            run_func(before, {"x": x, "y": expected}, {"N": n})
            run_func(f, {"x": x, "y": found}, {"N": n})
            np.testing.assert_array_equal(found, expected)


def test_whole_tiles_test_and_clamp_nothing() -> None:
    text = print_func(shift_inwards(_line(7)))
    whole = text[text.index("for o in") : text.index(".last")]
    assert "min(" not in whole
    assert "if " not in whole


def test_tiles_that_are_more_than_their_rows_stay() -> None:
    text = print_func(_line(7)).replace("+= c[j]", "+= c[j] + x[o, 0]")
    assert shift_inwards(parse_func(text)) == parse_func(text)


def test_other_loops_stay() -> None:
    func = parse_func(
        """
        func @f(x: f32[N], out y: f32[N]) {
          for o in serial((N + 3) // 4) {
            for i in unroll(4) { if o * 4 + i < N { y[o * 4 + i] = x[o * 4 + i] } }
          }
        }"""
    )
    assert shift_inwards(func) is func or print_func(shift_inwards(func)) == print_func(func)


def _depthwise(kernel: int, stride: int, pad: int) -> Graph:
    g = GraphBuilder("windows")
    x = g.input("x", tensor(F32, Var("N"), Var("H"), Var("W"), 12))
    w = np.random.default_rng(0).standard_normal((12, 1, kernel, kernel)).astype("f4")
    steps = (stride, stride)
    attrs = ConvAttrs(steps, (pad,) * 4, (1, 1), "channels_last", 12)
    return g.graph(g.add("relu", g.add("conv", x, g.constant(w), attrs=attrs)))


def _pool(kernel: int, stride: int, pad: int) -> Graph:
    g = GraphBuilder("pool")
    x = g.input("x", tensor(F32, Var("N"), Var("H"), Var("W"), 12))
    attrs = PoolAttrs((stride, stride), (pad,) * 4, (1, 1), "channels_last", (kernel, kernel))
    return g.graph(g.add("max_pool", x, attrs=attrs))


SIZES = [(1, 3, 3), (2, 3, 4), (1, 7, 6), (1, 4, 7), (1, 3, 8), (1, 5, 9), (1, 4, 33), (0, 3, 9)]


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 1, 1), (3, 2, 1), (5, 1, 2), (3, 1, 0)])
@pytest.mark.parametrize("made", [_depthwise, _pool])
def test_images_of_any_size(
    made: Callable[[int, int, int], Graph], kernel: int, stride: int, pad: int
) -> None:
    graph, rng = made(kernel, stride, pad), np.random.default_rng(1)
    images = [rng.standard_normal((*size, 12)).astype("f4") for size in SIZES]
    with check_native(graph, {"x": images[0]}) as model:
        for x in images[1:]:
            compare(graph, model, {"x": x})
            assert_same_on_threads(model, {"x": x}, 2, 3)
