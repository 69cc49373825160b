from __future__ import annotations

from dataclasses import replace

from tilewright.finalize.gpu.register_staging import stage_in_registers, words_of_thread
from tilewright.ir.loop.nodes import Alloc, Func, Stmt
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import statements_in

HEAD = "func @f(A: f32[64], B: f32[64], out T: f32[64], out R: f32[64], out C: f32[64])"


def _func(text: str) -> Func:
    return parse_func(f"{HEAD} {{ {text} }}")


def _text(stmt: Stmt) -> str:
    return print_func(replace(_func("C[0] = 0.0"), body=stmt))


def test_each_copy_has_registers_of_its_own() -> None:
    halves = stage_in_registers(
        _func(
            "for x in thread(8) { T[ramp(x * 4, 1, 4)] = A[ramp(x * 4, 1, 4)]  T[x + 32] = A[x] }"
            "if 2 < 3 { for y in thread(64) { R[y] = B[y ? y < 60] } }"
        ).body,
        {"T", "R"},
        "ahead",
    )
    assert [str(b) for b in halves.registers] == [
        "ahead.T: f32[5] @register",
        "ahead.R: f32[1] @register",
    ]
    assert halves.loads is not None
    loads, stores = _text(halves.loads), _text(halves.stores)
    assert "ahead.T[ramp(0, 1, 4)] = A[ramp(x * 4, 1, 4)]" in loads
    assert "ahead.T[4] = A[x]" in loads
    assert "ahead.R[0] = B[y ? y < 60]" in loads
    assert "T[ramp(x * 4, 1, 4)] = ahead.T[ramp(0, 1, 4)]" in stores
    assert "R[y] = ahead.R[0]" in stores
    assert loads.count("if 2 < 3") == stores.count("if 2 < 3") == 1


def test_what_is_no_single_copy_stays_whole() -> None:
    text = "for x in thread(8) { for i in serial(4) { T[x * 4 + i] = A[x * 4 + i] } C[x] = 1.0 }"
    body = _func(text).body
    halves = stage_in_registers(body, {"T"}, "ahead")
    assert halves.loads is None
    assert halves.registers == ()
    assert _text(halves.stores) == _text(body)


def test_registers_of_a_thread() -> None:
    def words(text: str) -> int:
        (alloc,) = (s for s in statements_in(_func(text).body) if isinstance(s, Alloc))
        return words_of_thread(alloc.buffer)

    rest = "for x in thread(32) { C[x] = 0.0 }"
    assert words(f"alloc S: f32[16, 64] @fragment {rest}") == 32
    assert words(f"alloc S: f16[24] @register {rest}") == 12
    assert words(f"alloc S: f16[24] @shared {rest}") == 0
