from __future__ import annotations

from tests.for_each import for_each
from tilewright.finalize.gpu.place_barriers import place_barriers
from tilewright.ir.loop.nodes import Barrier
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import statements


def _barriers(body: str, scope: str = "shared") -> int:
    text = f"""func @f(A: f32[4], out C: f32[4]) {{
      for b in grid(1) {{
        alloc T: f32[4] @{scope}
        {body}
      }}
    }}"""
    after = place_barriers(parse_func(text))
    assert parse_func(print_func(after)) == after
    return sum(isinstance(s, Barrier) for _, s in statements(after.body))


WRITE = "for x in thread(4) { T[x] = A[x] }"
READ = "for y in thread(4) { C[y] = T[3 - y] }"


def test_between_writing_and_reading() -> None:
    assert _barriers(WRITE + READ) == 1
    assert _barriers(READ + WRITE) == 1
    assert _barriers(WRITE) == 0


def test_not_from_one_launch_to_the_next() -> None:
    text = """func @f(A: f32[4], out C: f32[4]) {
      for t in serial(2) {
        for b in grid(1) { for x in thread(4) { C[x] = A[x] } }
        for c in grid(1) { for y in thread(4) { A[y] = C[3 - y] } }
      }
    }"""
    assert place_barriers(parse_func(text)) == parse_func(text)


def test_not_for_what_a_thread_has_alone() -> None:
    assert _barriers(WRITE + READ.replace("3 - y", "y"), "register") == 0


def test_loops_come_round() -> None:
    assert _barriers(f"for k in serial(3) {{ {WRITE} {READ} }}") == 2
    once = f"for k in serial(3) {{ {WRITE.replace('T[x]', 'C[x]')} }}"
    assert _barriers(once) == 1  # the next iteration writes the same
    assert _barriers(once.replace("3", "1")) == 0


def test_what_one_thread_does_is_a_phase() -> None:
    assert _barriers(f"T[0] = 1.0 {READ}") == 1


@for_each("tail", ["", "else { C[0] = 1.0 }"])
def test_branches(tail: str) -> None:
    assert _barriers(f"{WRITE} if b < 1 {{ {READ} }} {tail}") == 1
    assert _barriers(f"{WRITE} if T[0] < 1.0 {{ C[0] = 1.0 }}") == 1


def test_one_thread_needs_none() -> None:
    func = parse_func("func @f(out C: f32[4]) { for i in grid(4) { C[i] = 1.0  C[i] = C[i] } }")
    assert place_barriers(func) == func
