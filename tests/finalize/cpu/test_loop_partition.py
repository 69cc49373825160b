from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import as_int
from tilewright.arith.walk import conjuncts
from tilewright.finalize.cpu.loop_partition import loop_partition
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import For, Func, If
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops, statements


def _guarded(n: str, extent: str, limit: str) -> Func:
    return parse_func(
        f"""
        func @f(x: f32[{n} + 16], out y: f32[{extent} * 4]) {{
          for o in serial({extent}) {{
            for i in vectorize(4) {{
              if o * 4 + i < {limit} {{ y[o * 4 + i] = x[o * 4 + i] + 1.0 }}
            }}
          }}
        }}"""
    )


def _same(before: Func, after: Func, shapes: dict[str, int], sizes: dict[str, int]) -> None:
    x = np.arange(shapes["x"], dtype="f4")
    expected, found = np.full(shapes["y"], -1, "f4"), np.full(shapes["y"], -1, "f4")
    run_func(before, {"x": x, "y": expected}, sizes)
    run_func(after, {"x": x, "y": found}, sizes)
    np.testing.assert_array_equal(found, expected)


def test_an_inner_loop_that_runs_differently_often_in_each_iteration() -> None:
    before = parse_func(
        """
        func @f(x: f32[N + 16], out y: f32[(N + 7) // 8 * 8]) {
          for o in serial((N + 7) // 8) {
            for p in serial(min((N - o * 8 + 3) // 4, 2)) {
              for i in vectorize(4) {
                if o * 8 + p * 4 + i < N { y[o * 8 + p * 4 + i] = x[o * 8 + p * 4 + i] + 1.0 }
              }
            }
          }
        }"""
    )
    for n in (0, 1, 4, 7, 13, 16):
        size = (n + 7) // 8 * 8
        _same(before, loop_partition(before), {"x": n + 16, "y": size}, {"N": n})


@for_each("n", [0, 1, 3, 4, 5, 8, 11])
# The guard may hold everywhere, nowhere, or end anywhere: the loop must not be left.
@for_each("limit", ["N", "N + 5", "N - 6", "7", "N * 2 - 3"])
def test_main_part_and_tail(limit: str, n: int) -> None:
    before = _guarded("N", "((N + 3) // 4)", limit)
    extent = -(-n // 4)
    shapes, sizes = {"x": n + 16, "y": extent * 4}, {"N": n}
    _same(before, loop_partition(before), shapes, sizes)
    _same(before, vectorize(loop_partition(before)), shapes, sizes)


@for_each(("extent", "limit"), [(3, 12), (3, 9), (3, 0), (3, -5), (3, 40), (0, 0)])
def test_constant_sizes(extent: int, limit: int) -> None:
    before = _guarded("0", str(extent), str(limit))
    after = loop_partition(before)
    _same(before, after, {"x": 16, "y": extent * 4}, {})
    guards = [s for _, s in statements(after.body) if isinstance(s, If)]
    assert bool(guards) == (0 < extent and limit < 4 * extent)


def test_the_main_part_has_no_guard() -> None:
    after = loop_partition(_guarded("N", "((N + 3) // 4)", "N"))
    text = print_func(after)
    assert "for o in serial(N // 4) {" in text
    assert text.index("if ") > text.index("for o.tail")
    names = [loop.name for loop in loops(after.body)]
    assert len(set(names)) == len(names)


TRIANGLE = """
func @f(x: f32[N], out y: f32[N]) {
  for r in serial(N) {
    for o in serial((N + 3) // 4) {
      for i in vectorize(4) {
        if o * 4 + i < N { y[o * 4 + i] = y[o * 4 + i] + x[o * 4 + i ? o * 4 + i < r + 1] }
      }
    }
  }
}"""


@for_each("n", [0, 1, 5, 12])
def test_a_guard_may_depend_on_outer_loops(n: int) -> None:
    before = parse_func(TRIANGLE)
    shapes, sizes = {"x": n, "y": n}, {"N": n}
    _same(before, loop_partition(before), shapes, sizes)


DATA = """
func @f(n: i64[8], out y: f32[12]) {
  for o in serial(3) {
    for i in vectorize(4) {
      if o * 4 + i < n[i] + n[0] { y[o * 4 + i] = 1.0 } else { y[o * 4 + i] = 2.0 }
    }
  }
}"""


def test_a_guard_on_data_stays() -> None:
    before = parse_func(DATA)
    assert loop_partition(before) == before


def test_a_guard_whose_limit_moves_with_the_inner_loop_stays_inside() -> None:
    text = """
    func @f(out y: f32[8, 8]) {
      for a in serial(8) {
        for o in serial(2) {
          for i in vectorize(4) { if a < o * 4 + i + 1 { y[a, o * 4 + i] = 1.0 } }
        }
      }
    }"""
    before = parse_func(text)
    expected, found = np.zeros((8, 8), "f4"), np.zeros((8, 8), "f4")
    run_func(before, {"y": expected})
    run_func(loop_partition(before), {"y": found})
    np.testing.assert_array_equal(found, expected)


def test_a_parallel_loop_keeps_its_main_part_parallel() -> None:
    text = print_func(
        loop_partition(
            parse_func(
                print_func(_guarded("N", "((N + 3) // 4)", "N")).replace(
                    "for o in serial", "for o in parallel"
                )
            )
        )
    )
    assert "for o in parallel(N // 4)" in text
    assert "for o.tail in serial" in text


def test_conjuncts() -> None:
    func = parse_func("func @f(out y: f32[4]) { if N < 4 & 2 < N & M < N { y[0] = 1.0 } }")
    assert isinstance(func.body, If)
    assert [str(c) for c in conjuncts(func.body.cond)] == ["N < 4", "2 < N", "M < N"]


PADDED = """
func @f(x: f32[{n}], out y: f32[{size}]) {{
  for o in {kind}({count}) {{
    for i in vectorize(4) {{
      if o * 4 + i < {size} {{
        y[o * 4 + i] = x[o * 4 + i - {pad} ? {before} < o * 4 + i & o * 4 + i < {end}]
      }}
    }}
  }}
}}"""


@for_each("kind", ["serial", "parallel"])
@for_each("pad", [1, 3, 4, 9, 30])
@for_each("n", [1, 6, 16, 21])
def test_loads_that_are_masked_at_the_begin(n: int, pad: int, kind: str) -> None:
    size = n + pad + 2
    values = {"n": n, "size": size, "count": -(-size // 4), "pad": pad, "before": pad - 1}
    before = parse_func(PADDED.format(kind=kind, end=n + pad, **values))
    after = loop_partition(before)
    _same(before, after, {"x": n, "y": size}, {})
    _same(before, vectorize(after), {"x": n, "y": size}, {})
    names = [loop.name for loop in loops(after.body)]
    assert len(set(names)) == len(names)


def test_between_begin_and_end_nothing_is_masked() -> None:
    values = {"n": 30, "size": 34, "count": 9, "pad": 2, "before": 1, "end": 32}
    text = print_func(loop_partition(parse_func(PADDED.format(kind="serial", **values))))
    main = text[text.index("for o in serial(7)") : text.index("for o.tail")]
    assert "for o.head in serial(1)" in text
    assert "?" not in main
    assert "if" not in main


def test_loops_that_ask_for_it_are_cut_at_scalar_guards() -> None:
    text = """
    func @f(x: f32[8], out y: f32[8]) {{
      for i in serial(8) {note}{{
        y[i] = x[i - 1 ? 0 < i & i < 7]
      }}
    }}"""
    plain, noted = (parse_func(text.format(note=note)) for note in ("", "{partition=1} "))
    assert print_func(loop_partition(plain)) == print_func(plain)
    assert [loop.name for loop in loops(loop_partition(noted).body)] == ["i.head", "i", "i.tail"]
    _same(noted, loop_partition(noted), {"x": 8, "y": 8}, {})


@for_each("n", [1, 4, 6, 13])
def test_iterations_of_fused_loops_test_once_whether_they_are_whole(n: int) -> None:
    before = parse_func(
        """
        func @f(x: f32[B * N], out y: f32[B * ((N + 3) // 4) * 4]) {
          for p in parallel(B * ((N + 3) // 4)) {versioned=1} {
            for i in vectorize(4) {
              y[p * 4 + i] = x[p // ((N + 3) // 4) * N + p % ((N + 3) // 4) * 4 + i
                ? p % ((N + 3) // 4) * 4 + i < N]
            }
          }
        }"""
    )
    after = loop_partition(before)
    _same(before, after, {"x": 3 * n, "y": 3 * -(-n // 4) * 4}, {"B": 3, "N": n})
    (test,) = (s for _, s in statements(after.body) if isinstance(s, If))
    assert "?" not in str(test.then)
    assert "?" in str(test.orelse)


@for_each("n", [3, 16, 22])
def test_whole_iterations_have_no_clamps(n: int) -> None:
    before = parse_func(
        """
        func @f(x: f32[N], out y: f32[(N + 3) // 4 * 4]) {
          for p in parallel((N + 3) // 4) {versioned=1} {
            for i in unroll(4) { y[p * 4 + i] = x[min(p * 4 + i, N - 1)] }
          }
        }"""
    )
    after = loop_partition(before)
    _same(before, after, {"x": n, "y": -(-n // 4) * 4}, {"N": n})
    (test,) = (s for _, s in statements(after.body) if isinstance(s, If))
    assert "min(" not in str(test.then)
    assert "min(" in str(test.orelse)


def test_what_follows_a_long_first_part_is_split_again() -> None:
    """A concatenation has no guards but where one operand ends, and at the end."""
    before = parse_func(
        """
        func @f(x: f32[22], z: f32[29], out y: f32[51]) {
          for o in serial(13) {
            for i in vectorize(4) {
              if o * 4 + i < 51 {
                y[o * 4 + i] = select(o * 4 + i < 22, x[o * 4 + i ? o * 4 + i < 22],
                                      z[o * 4 + i - 22 ? 21 < o * 4 + i])
              }
            }
          }
        }"""
    )
    after = loop_partition(before)
    given = {"x": np.arange(22, dtype="f4"), "z": np.arange(29, dtype="f4") + 100}
    found = np.full(51, -1, "f4")
    run_func(after, {**given, "y": found}, {})
    np.testing.assert_array_equal(found, np.concatenate([given["x"], given["z"]]))
    plain = [s for s in loops(after.body) if "?" not in print_func(replace(after, body=s))]
    assert [as_int(s.extent) for s in plain if s.kind == "serial"] == [5, 6]


@for_each("kind", ["parallel", "serial"])
def test_each_operand_of_a_fused_concatenation_is_copied_without_masks(kind: str) -> None:
    before = parse_func(
        f"""
        func @f(x: f32[44], z: f32[58], out y: f32[102]) {{
          for p in {kind}(26) {{versioned=1}} {{
            for i in vectorize(4) {{
              if p % 13 * 4 + i < 51 {{
                y[p // 13 * 51 + p % 13 * 4 + i] = select(p % 13 * 4 + i < 22,
                  x[p // 13 * 22 + p % 13 * 4 + i ? p % 13 * 4 + i < 22],
                  z[p // 13 * 29 + p % 13 * 4 + i - 22 ? 21 < p % 13 * 4 + i])
              }}
            }}
          }}
        }}"""
    )
    after = loop_partition(before)
    verify_func(after)
    given = {"x": np.arange(44, dtype="f4"), "z": np.arange(58, dtype="f4") + 100}
    found = np.full(102, -1, "f4")
    run_func(after, {**given, "y": found}, {})
    rows = [given["x"].reshape(2, 22), given["z"].reshape(2, 29)]
    np.testing.assert_array_equal(found.reshape(2, 51), np.concatenate(rows, 1))
    plain = [print_func(replace(after, body=s)) for s in loops(after.body)]
    plain = [text for text in plain if "?" not in text and "if " not in text]
    assert [name for name in "xz" for text in plain if f"= {name}[" in text] == ["x", "z"]


def test_the_last_iterations_of_a_parallel_loop_run_beside_the_others() -> None:
    for extent, limit in ((2, 5), (3, 9), (5, 9), (3, 0), (3, 12)):
        serial = _guarded("0", str(extent), str(limit))
        assert isinstance(serial.body, For)
        before = replace(serial, body=replace(serial.body, kind="parallel"))
        after = loop_partition(before)
        _same(before, after, {"x": 16, "y": extent * 4}, {})
        assert isinstance(after.body, For)
        assert (after.body.kind, as_int(after.body.extent)) == ("parallel", extent)
