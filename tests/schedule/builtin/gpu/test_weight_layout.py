from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.programs import check_same
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.schedule.builtin.gpu.weight_layout import arrange_weights
from tilewright.schedule.schedule import Schedule

CONV = """func @f(x: f32[6, 7, 4], w: f32[5, 4, 3, 2], out y: f32[4, 6, 5]) {
  for h, v, o, r, q, c in serial(4, 6, 5, 3, 2, 4) {
    block "y" [bh: S(4) = h, bv: S(6) = v, bo: S(5) = o, br: R(3) = r, bq: R(2) = q, bc: R(4) = c]
      reads x[bh + br, bv + bq, bc], w[bo, bc, br, bq] writes y[bh, bv, bo]
      init { y[bh, bv, bo] = 0.0 }
      { y[bh, bv, bo] += x[bh + br, bv + bq, bc] * w[bo, bc, br, bq] }
  }
}"""
DEPTHWISE = """func @f(x: f32[6, 7, 4], w: f32[4, 3, 2], out y: f32[4, 6, 4]) {
  for h, v, c, r, q in serial(4, 6, 4, 3, 2) {
    block "y" [bh: S(4) = h, bv: S(6) = v, bc: S(4) = c, br: R(3) = r, bq: R(2) = q]
      reads x[bh + br, bv + bq, bc], w[bc, br, bq] writes y[bh, bv, bc]
      init { y[bh, bv, bc] = 0.0 }
      { y[bh, bv, bc] += x[bh + br, bv + bq, bc] * w[bc, br, bq] }
  }
}"""


def arranged(text: str, constants: frozenset[str] = frozenset({"w"})) -> tuple[Func, list[int]]:
    before = parse_func(text)
    sch = Schedule(before)
    arrange_weights(sch, "y", constants, H200)
    check_same(before, sch.func, {})
    order = [part[0] for _, layout in sch.func.layouts for part in layout.parts]
    return sch.func, order


@for_each(("text", "order"), [(CONV, [0, 2, 3, 1]), (DEPTHWISE, [1, 2, 0])])
def test_what_is_read_side_by_side_lies_so(text: str, order: list[int]) -> None:
    assert arranged(text)[1] == order


def test_what_the_caller_has_stays() -> None:
    assert arranged(CONV, frozenset())[1] == []


def test_what_lies_so_already_stays() -> None:
    first = CONV.replace("[5, 4, 3, 2]", "[5, 3, 2, 4]").replace(
        "w[bo, bc, br, bq]", "w[bo, br, bq, bc]"
    )
    assert arranged(first)[1] == []
    across = CONV.replace("[5, 4, 3, 2]", "[4, 3, 2, 5]").replace(
        "w[bo, bc, br, bq]", "w[bc, br, bq, bo]"
    )
    assert arranged(across)[1] == []


@for_each(
    ("dtype", "rows", "order"),
    [("f16", 24, [1, 0]), ("f16", 4, []), ("f32", 24, []), ("f16", 1, [1, 0]), ("f32", 1, [1, 0])],
)
def test_16_bits_of_many_rows_and_all_of_one_have_the_sum_innermost(
    dtype: str, rows: int, order: list[int]
) -> None:
    text = f"""func @f(x: {dtype}[{rows}, 8], w: {dtype}[8, 16], out y: f32[{rows}, 16]) {{
      for i, j, k in serial({rows}, 16, 8) {{
        block "y" [bi: S({rows}) = i, bj: S(16) = j, bk: R(8) = k]
          reads x[bi, bk], w[bk, bj] writes y[bi, bj]
          init {{ y[bi, bj] = 0.0 }}
          {{ y[bi, bj] += f32(x[bi, bk]) * f32(w[bk, bj]) }}
      }}
    }}"""
    if dtype == "f32":
        text = text.replace("f32(x[bi, bk])", "x[bi, bk]").replace("f32(w[bk, bj])", "w[bk, bj]")
    assert arranged(text)[1] == order


def test_f32_of_many_rows_has_rows_and_columns_innermost() -> None:
    text = """func @f(x: f32[24, 8], w: f32[16, 8], out y: f32[24, 16]) {
      for i, j, k in serial(24, 16, 8) {
        block "y" [bi: S(24) = i, bj: S(16) = j, bk: R(8) = k]
          reads x[bi, bk], w[bj, bk] writes y[bi, bj]
          init { y[bi, bj] = 0.0 }
          { y[bi, bj] += x[bi, bk] * w[bj, bk] }
      }
    }"""
    assert arranged(text)[1] == [1, 0]
    assert arranged(text, frozenset({"x"}))[1] == [1, 0]
    assert arranged(text.replace("24", "4"))[1] == []


@for_each(("columns", "shape"), [(18, "8, 1, 32"), (130, "8, 2, 128"), (20, "8, 20")])
def test_columns_that_are_no_whole_pieces_have_room_for_a_tile(columns: int, shape: str) -> None:
    text = f"""func @f(x: f32[24, 8], w: f32[8, {columns}], out y: f32[24, {columns}]) {{
      for i, j, k in serial(24, {columns}, 8) {{
        block "y" [bi: S(24) = i, bj: S({columns}) = j, bk: R(8) = k]
          reads x[bi, bk], w[bk, bj] writes y[bi, bj]
          init {{ y[bi, bj] = 0.0 }}
          {{ y[bi, bj] += x[bi, bk] * w[bk, bj] }}
      }}
    }}"""
    assert f"w: f32[{shape}]" in print_func(arranged(text)[0])
