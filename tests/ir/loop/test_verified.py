from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.core.errors import VerifyError
from tilewright.ir.loop import verify
from tilewright.ir.loop.nodes import Block, Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.verified import VerifiedStmts
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import find_block, rewrite_stmts

# "C" is put in the place of "here".
AROUND = """
func @f(A: f32[16], B: f32[4], out C: f32[16]) {
  for i in serial(8) {
    block "here" [] { }
  }
  for j in serial(8) {
    block "D" [vj: S(8) = j] writes C[vj] { C[vj] = 0.0 }
  }
}
"""
BLOCK = """block "C" [vi: S(8) = i * 2]
  reads A[vi], B[0] writes C[vi] where i < 7 { C[vi] = A[vi + n] * B[0] }"""
NEST = 'block "C" [vi: S(8) = i] writes C[0 : 4] { for u in unroll(4) { C[u] = 0.0 } }'

# What the block takes from outside, and a change there after which the block is wrong.
WRONG = {
    "rank": {"A: f32[16]": "A: f32[16, 1]"},
    "type": {"B: f32[4]": "B: f16[4]"},
    "buffer": {"A: f32[16]": "Z: f32[16]"},
    "writable": {"out C: f32[16]": "C: f32[16], out E: f32[16]", "C[vj]": "E[vj]"},
    "loop": {"for i in": "for k in", "for j in": "for i in", "= j": "= i"},
    "size": {"for j in": "for n in", "= j": "= n"},
    "iterator": {
        "for i in serial(8) {": "for i in serial(8) { for vi in serial(8) {",
        "{ }": "{ }}",
    },
    "name": {'"D"': '"C"'},
}


def edited(changes: dict[str, str], block: Block) -> Func:
    text = AROUND
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    func = parse_func(text)
    here = find_block(func, "here")
    body = rewrite_stmts(func.body, lambda s: block if s == here else None)
    return Func(func.name, func.params, func.outputs, body)


def parsed(block: str) -> Func:
    return parse_func(AROUND.replace('block "here" [] { }', block))


def test_a_block_is_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    check = verify._STATEMENTS[Block]
    counted = {Block: lambda self, s: (looked.append(s.name), check(self, s))}
    monkeypatch.setattr(verify, "_STATEMENTS", verify._STATEMENTS | counted)
    func, verified = parsed(BLOCK), VerifiedStmts()
    verify_func(func, verified)
    verify_func(func, verified)
    verify_func(edited({"0.0": "1.0"}, find_block(func, "C")), verified)
    assert looked == ["C", "D", "D"]


@for_each("what", WRONG)
def test_a_change_around_a_block_is_seen(what: str) -> None:
    func, verified = parsed(BLOCK), VerifiedStmts()
    verify_func(func, verified)
    changed = edited(WRONG[what], find_block(func, "C"))
    with pytest.raises(VerifyError) as anew:
        verify_func(changed)
    with pytest.raises(VerifyError) as again:
        verify_func(changed, verified)
    assert str(again.value) == str(anew.value)


def test_a_block_that_binds_names_within_itself_is_looked_into_again() -> None:
    func, verified = parsed(NEST), VerifiedStmts()
    verify_func(func, verified)
    with pytest.raises(VerifyError, match="'u' is taken twice"):
        verify_func(edited({"j in": "u in", "= j": "= u"}, find_block(func, "C")), verified)
