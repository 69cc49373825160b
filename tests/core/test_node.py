from __future__ import annotations

import dataclasses
import gc

import pytest

from tilewright.core.node import Interned, children, node


@node
class Leaf:
    value: int = 0


@node
class Pair:
    name: str
    left: Leaf
    rest: tuple[Leaf | int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Word(metaclass=Interned):
    text: str
    size: int = 1


def test_nodes_are_frozen_and_compared_by_value() -> None:
    assert Pair("a", Leaf(1)) == Pair("a", Leaf(1), ())
    assert hash(Pair("a", Leaf(1))) == hash(Pair("a", Leaf(1)))
    assert Pair("a", Leaf(1)) != Pair("b", Leaf(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Leaf(1).value = 2  # type: ignore[misc]
    assert not hasattr(Leaf(1), "__dict__")


def test_children_are_found_in_fields_and_tuples() -> None:
    pair = Pair("a", Leaf(1), (Leaf(2), 7, Leaf(3)))
    assert list(children(pair, Leaf)) == [Leaf(1), Leaf(2), Leaf(3)]
    assert list(children(pair, int)) == [7]


def test_equal_constructions_are_one_object() -> None:
    assert Word("x") is Word("x", 1) is Word(text="x") is Word(size=1, text="x")
    assert Word("x") is not Word("x", 2)


def test_interned_objects_go_when_nobody_holds_them() -> None:
    before = len(Interned._table)
    word = Word("only here", 3)
    assert len(Interned._table) == before + 1
    del word
    gc.collect()
    assert len(Interned._table) <= before
