from __future__ import annotations

from math import prod
from random import Random

import pytest

from tests.schedule.programs import matmul, refused
from tilewright.schedule.sample import sample_categorical, sample_tile
from tilewright.schedule.schedule import Schedule


@pytest.mark.parametrize("seed", range(20))
def test_tiles_of_constant_extents_are_whole(seed: int) -> None:
    found = sample_tile(matmul(96, 8, 8), Random(seed), "y.i0", 4, 16)
    assert isinstance(found, tuple)
    first, *rest = found
    assert first is None
    assert len(rest) == 3
    assert 96 % prod(rest) == 0
    assert rest[-1] <= 16


def test_tiles_of_symbolic_extents() -> None:
    found = {sample_tile(matmul(), Random(s), "y.i0", 2, 8) for s in range(50)}
    assert found == {(None, 1), (None, 2), (None, 4), (None, 8)}


def test_categorical_uses_the_seed() -> None:
    func = matmul()
    draws = [sample_categorical(func, Random(s), (16, 64, 256)) for s in range(30)]
    assert set(draws) == {16, 64, 256}
    assert draws == [sample_categorical(func, Random(s), (16, 64, 256)) for s in range(30)]


def test_used_by_other_steps() -> None:
    sch = Schedule(matmul(), seed=5)
    width = sch.sample_categorical([2, 4])
    _, inner = sch.split("y.i1", [None, width])
    sch.annotate(inner, "hint", sch.sample_categorical(["a", "b"]))
    assert sch.trace.replay(matmul()) == sch.func
    assert "[?, v0]" in str(sch.trace)


def test_refused() -> None:
    sch = Schedule(matmul())
    refused("sample-tile.count", sch.sample_tile, "y.i0", 0, 4)
    refused("sample-categorical.empty", sch.sample_categorical, [])
