from __future__ import annotations

from tilewright.ir.loop.annotations import ANNOTATIONS, PARTITION, PERSISTENT, PINGPONG
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.parse import parse_func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_loop

TEXT = "func @f(out C: f32[8]) { for b in grid(8) {persistent=4, pingpong=2} { C[b] = 0.0 } }"


def _loop() -> For:
    return find_loop(parse_func(TEXT), "b")


def test_a_loop_has_the_annotations_of_its_text() -> None:
    assert (PERSISTENT.of(_loop()), PINGPONG.of(_loop())) == (4, 2)
    assert PERSISTENT.is_on(_loop())
    assert not PARTITION.is_on(_loop())
    assert PARTITION.of(_loop()) == 0
    assert "{persistent=4, pingpong=2}" in print_func(parse_func(TEXT))


def test_a_note_is_what_a_loop_carries() -> None:
    assert _loop().annotations == (PERSISTENT.note(4), PINGPONG.note(2))


def test_every_key_says_what_it_asks_for() -> None:
    assert all(key == a.key and a.meaning.endswith(".") for key, a in ANNOTATIONS.items())
