from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, compare
from tests.finalize.kernel_steps import kernels
from tests.for_each import for_each
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.finalize.cpu.edge_tiles import edge_tiles
from tilewright.finalize.unroll import unroll
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import For, Func, If
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.cpu.epilogue import MIN_STEPS

N = Var("N")


def _sums(
    rows: int, limit: str = "N", note: str = "{edge_rows=1}", epilogue: str = "unroll"
) -> Func:
    return parse_func(
        f"""
        func @f(x: f32[N, 4], out y: f32[N]) {{
          for o in serial((N + {rows - 1}) // {rows}) {{
            alloc c: f32[{rows}] @register
            for a in unroll({rows}) {note} {{ c[a] = 0.0 }}
            for k in serial(4) {{
              for i in unroll({rows}) {note} {{ c[i] += x[min(o * {rows} + i, N - 1), k] }}
            }}
            for j in {epilogue}({rows}) {note} {{
              if o * {rows} + j < {limit} {{ y[o * {rows} + j] = c[j] }}
            }}
          }}
        }}"""
    )


@for_each("rows", [1, 2, 5, 6, 8])
@for_each("limit", ["N", "N - 3", "5"])
@for_each("least", [1, 2, 3, 5, 6])
@for_each("epilogue", ["unroll", "serial"])
def test_the_same_for_every_number_of_rows(
    rows: int, limit: str, least: int, epilogue: str
) -> None:
    before = _sums(rows, limit, f"{{edge_rows={least}}}", epilogue)
    after = edge_tiles(before)
    verify_func(after)
    for n in range(13):
        if limit == "5" and n < 5:
            continue
        x = np.arange(n * 4, dtype="f4").reshape(n, 4)
        for f in (after, unroll(after)):
            expected, found = np.full(n, -1, "f4"), np.full(n, -1, "f4")
            run_func(before, {"x": x, "y": expected}, {"N": n})
            run_func(f, {"x": x, "y": found}, {"N": n})
            np.testing.assert_array_equal(found, expected)


@for_each("least", [1, 2, 4])
def test_rows_stay_in_the_part_that_an_outer_loop_has(least: int) -> None:
    """Dealt out evenly, the 7 rows from 0 on would leave some between two groups of two tiles."""
    before = parse_func(
        f"""
        func @f(x: f32[N], out y: f32[N]) {{
          for g in serial((N + 7) // 8) {{ for o in serial(2) {{
            for i in unroll(4) {{edge_rows={least}}} {{
              if g * 8 + o * 4 + i < N {{ y[g * 8 + o * 4 + i] = x[g * 8 + o * 4 + i] }}
            }}
          }} }}
        }}"""
    )
    after = edge_tiles(before)
    for n in range(20):
        x, found = np.arange(n, dtype="f4"), np.full(n, -1, "f4")
        run_func(after, {"x": x, "y": found}, {"N": n})
        np.testing.assert_array_equal(found, x)


def _heights(func: Func) -> set[int]:
    unrolled = [loop for loop in loops(edge_tiles(func).body) if loop.kind == "unroll"]
    return {as_int(loop.extent) or 0 for loop in unrolled}


def test_heights_double_from_the_least() -> None:
    def heights(rows: int, least: int) -> set[int]:
        return _heights(_sums(rows, note=f"{{edge_rows={least}}}"))

    assert heights(14, 7) == {7, 14}
    assert heights(6, 3) == {3, 6}


@for_each("least", [1, 2])
def test_heights_share_an_epilogue(least: int) -> None:
    note = f"{{edge_rows={least}}}"
    counted, guarded = (_epilogue(_sums(5, note=note, epilogue=e)) for e in ("serial", "unroll"))
    assert as_int(counted.extent) is None
    assert not isinstance(counted.body, If)
    assert as_int(guarded.extent) == 5
    assert isinstance(guarded.body, If)


def _epilogue(func: Func) -> For:
    (loop,) = (loop for loop in loops(edge_tiles(func).body) if loop.name.startswith("j"))
    return loop


def test_whole_tiles_only() -> None:
    assert _heights(_sums(6, note="{edge_rows=6}")) == {1, 6}


def test_every_height_from_one_on() -> None:
    assert _heights(_sums(5)) == {1, 2, 3, 4, 5}


@for_each(
    ("rows", "limit", "expected"),
    [(6, 7, {4, 3}), (6, 12, {6}), (5, 11, {4, 3}), (5, 21, {5, 1}), (4, 3, {3})],
)
def test_known_rows_need_few_heights(rows: int, limit: int, expected: set[int]) -> None:
    assert _heights(_sums(rows, str(limit))) == expected


def test_tiles_that_are_more_than_their_rows_stay() -> None:
    """Where something depends on the tile besides its rows, the tile cannot start elsewhere."""
    text = print_func(_sums(6)).replace("y[o * 6 + j] = c[j]", "y[o * 6 + j] = c[j] + x[o, 0]")
    before = parse_func(text)
    assert "min(" in print_func(edge_tiles(before))
    after = edge_tiles(before)
    for n in (1, 7, 13):
        x = np.arange(n * 4, dtype="f4").reshape(n, 4)
        expected, found = np.zeros(n, "f4"), np.zeros(n, "f4")
        run_func(before, {"x": x, "y": expected}, {"N": n})
        run_func(after, {"x": x, "y": found}, {"N": n})
        np.testing.assert_array_equal(found, expected)


def test_only_marked_loops() -> None:
    before = _sums(4, note="")
    assert edge_tiles(before) == before


def _product(rows: object, columns: int = 24, depth: int = 8, last: str = "relu") -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, rows, depth))
    w = g.constant(np.random.default_rng(0).standard_normal((depth, columns)).astype("f4"))
    top = g.constant(np.array(6, np.float32))
    return g.graph(g.add("min", g.add(last, g.add("matmul", x, w)), top))


def test_schedules_of_unknown_rows_are_marked() -> None:
    (kernel,) = kernels(_product(N))
    assert "edge_rows=1" in print_func(kernel.func)


@pytest.mark.parametrize("rows", [N, 9])
@pytest.mark.parametrize("last", ["relu", "gelu"])
def test_products_in_machine_code(rows: object, last: str) -> None:
    depth = 8 if last == "relu" else MIN_STEPS
    graph = _product(rows, 24 if last == "relu" else 100, depth, last)
    rng = np.random.default_rng(1)
    first = 9
    x = rng.standard_normal((first, depth)).astype("f4")
    with check_native(graph, {"x": x}) as model:
        for n in range(0, 20) if rows is N else ():
            compare(graph, model, {"x": rng.standard_normal((n, depth)).astype("f4")})
