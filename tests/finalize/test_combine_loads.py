"""Neighbouring scalars become lanes of one vector; all else stays, and so does the meaning."""

from __future__ import annotations

import numpy as np

from tests.codegen.native_func import both
from tilewright.arith.vector import Lane
from tilewright.arith.walk import subexpressions
from tilewright.finalize.combine_loads import combine_loads
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import expressions
from tilewright.target.registry import CPUS, resolve_gpu

ARM = CPUS["aarch64"]
H200 = resolve_gpu("cuda")


def _func(*offsets: int) -> Func:
    steps = "\n".join(
        f"c[ramp(0, 1, 4)] += a[i * 8 + {o}] * b[ramp({4 * n}, 1, 4)]"
        for n, o in enumerate(offsets)
    )
    return parse_func(
        f"""
        func @f(a: f32[24], b: f32[64], out c: f32[4]) {{
          for i in serial(2) {{ {steps} }}
        }}
        """
    )


def _lanes(func: Func) -> int:
    found = {x for e in expressions(func.body) for x in subexpressions(e) if isinstance(x, Lane)}
    return len(found)


def _check(func: Func) -> None:
    """Machine code may fuse the multiply and the add, so the last bits may differ."""
    found, expected = both(func, _arrays())
    np.testing.assert_allclose(found["c"], expected["c"], rtol=1e-6)


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.random(n, dtype=np.float32) for name, n in (("a", 24), ("b", 64), ("c", 4))}


def test_a_whole_vector_of_neighbours() -> None:
    func = combine_loads(_func(1, 2, 3, 4), ARM)
    assert _lanes(func) == 4
    assert "lane(a[ramp(i * 8 + 1, 1, 4)], 3)" in print_func(func)
    _check(func)


def test_order_and_rest_do_not_matter() -> None:
    func = combine_loads(_func(6, 2, 4, 3, 5, 9), ARM)
    assert _lanes(func) == 4
    _check(func)


def test_gaps_and_buffers_that_are_written_stay() -> None:
    assert _lanes(combine_loads(_func(0, 1, 3, 5), ARM)) == 0
    accumulating = parse_func(
        """
        func @f(b: f32[64], out c: f32[8]) {
          c[ramp(4, 1, 4)] += c[0] * b[ramp(0, 1, 4)]
          c[ramp(4, 1, 4)] += c[1] * b[ramp(4, 1, 4)]
          c[ramp(4, 1, 4)] += c[2] * b[ramp(8, 1, 4)]
          c[ramp(4, 1, 4)] += c[3] * b[ramp(12, 1, 4)]
        }
        """
    )
    assert _lanes(combine_loads(accumulating, ARM)) == 0


def test_only_where_a_lane_costs_nothing() -> None:
    func = _func(0, 1, 2, 3)
    assert combine_loads(func, CPUS["x86-64-v3"]) is func


def _shared(row: int) -> Func:
    """A thread's column times rows of so many words in shared memory."""
    steps = "\n".join(f"s[0] += t[x * {row} + {k}] * a[{k}]" for k in range(8))
    return parse_func(
        f"""
        func @f(a: f32[8], out c: f32[4]) {{
          for g in grid(1) {{
            alloc t: f32[{4 * row}] @shared
            for x in thread(4) {{
              alloc s: f32[1] @register
              {steps}
              c[x] = s[0]
            }}
          }}
        }}
        """
    )


def test_neighbours_in_shared_memory_are_read_as_aligned_vectors() -> None:
    assert _lanes(combine_loads(_shared(12), H200)) == 8
    assert _lanes(combine_loads(_shared(9), H200)) == 0
