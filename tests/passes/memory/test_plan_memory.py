from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.passes.memory.plan_memory import (
    ALIGNMENT,
    MAX_MEAN_OVERLAPS,
    LiveRange,
    plan_memory,
)
from tilewright.runtime.arena_layout import first_fit

N, M = Var("N"), Var("M")


def _lives(seed: int, sizes: list[Expr], count: int) -> list[LiveRange]:
    rng = random.Random(seed)
    lives = []
    for i in range(count):
        first = rng.randrange(12)
        lives.append(
            LiveRange(f"b{i}", rng.choice(sizes), first, first + rng.choice((0, 1, 1, 2, 7)))
        )
    return lives


def _check(
    lives: list[LiveRange], places: dict[str, int], sizes: dict[str, int], peak: int
) -> None:
    """Buffers that live together do not overlap; all are aligned and lie within the arena."""
    for b in lives:
        assert places[b.name] % ALIGNMENT == 0
        assert 0 <= places[b.name]
        assert places[b.name] + sizes[b.name] <= peak
    for a, b in combinations(lives, 2):
        if a.first <= b.last and b.first <= a.last:
            ends = places[a.name] + sizes[a.name], places[b.name] + sizes[b.name]
            assert ends[0] <= places[b.name] or ends[1] <= places[a.name]


@for_each("seed", range(20))
def test_known_sizes(seed: int) -> None:
    lives = _lives(seed, [const(n) for n in (0, 1, 64, 65, 4096, 100_000)], 25)
    plan = plan_memory(lives)
    assert plan.placement is None
    places = {name: as_int(offset) for name, offset in plan.offsets.items()}
    sizes = {b.name: as_int(b.size) for b in lives}
    _check(lives, places, sizes, plan.peak)
    assert plan.lower_bound <= plan.peak <= sum(-(-s // 64) * 64 for s in sizes.values())
    assert plan.overhead >= 1.0


@for_each("seed", range(20))
def test_symbolic_sizes_at_every_value(seed: int) -> None:
    lives = _lives(seed, [N * 4, N * M * 4, M, const(256), N * N], 20)
    plan = plan_memory(lives)
    placement = plan.placement
    assert placement is not None
    by_offset = {v.name: i for i, v in enumerate(placement.offsets)}
    for n, m in ((0, 0), (1, 1), (3, 1000), (500, 2), (128, 128)):
        values = {"N": n, "M": m}
        given = [evaluate(size, values) for size in placement.sizes]
        found = first_fit(given, placement.conflicts)
        places = {name: found[by_offset[v.name]] for name, v in plan.offsets.items()}
        sizes = {b.name: evaluate(b.size, values) for b in lives}
        peak = max((p + s for p, s in zip(found, given, strict=True)), default=0)
        _check(lives, places, sizes, peak)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 8), st.integers(0, 3)), max_size=15))
def test_any_lives(rows: list[tuple[int, int, int]]) -> None:
    lives = [LiveRange(f"b{i}", const(s), f, f + d) for i, (s, f, d) in enumerate(rows)]
    plan = plan_memory(lives)
    places = {name: as_int(offset) for name, offset in plan.offsets.items()}
    _check(lives, places, {b.name: as_int(b.size) for b in lives}, plan.peak)
    assert plan.peak >= plan.lower_bound


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 8), st.integers(0, 3)), max_size=15),
    st.integers(0, 300),
)
def test_small_ones_share_with_none(rows: list[tuple[int, int, int]], limit: int) -> None:
    lives = [LiveRange(f"b{i}", const(s), f, f + d) for i, (s, f, d) in enumerate(rows)]
    plan = plan_memory(lives, limit)
    places = {name: as_int(offset) for name, offset in plan.offsets.items()}
    sizes = {b.name: as_int(b.size) for b in lives}
    always = [LiveRange(b.name, b.size, 0, 99) if 0 < sizes[b.name] <= limit else b for b in lives]
    _check(always, places, sizes, plan.peak)
    assert plan.peak >= plan.lower_bound == plan_memory(lives).lower_bound


def test_symbolic_sizes_take_turns_whatever_is_small() -> None:
    lives = [LiveRange("a", const(8), 0, 1), LiveRange("b", N, 0, 1)]
    assert plan_memory(lives, 64) == plan_memory(lives)


def test_a_chain_needs_two_buffers() -> None:
    lives = [LiveRange(f"b{i}", const(1000), i, i + 1) for i in range(50)]
    plan = plan_memory(lives)
    assert plan.peak == plan.lower_bound == 2 * 1024


@pytest.mark.parametrize("sizes", [[const(0), const(64), const(65)], [N * 4, N * M * 4, const(9)]])
def test_too_many_at_once_to_list_all_pairs(sizes: list[Expr]) -> None:
    count = 4 * MAX_MEAN_OVERLAPS
    lives = [LiveRange(f"b{i}", sizes[i % 3], i, count) for i in range(count)]
    lives += [LiveRange(f"c{i}", sizes[i % 3], count + i, count + i) for i in range(count)]
    plan = plan_memory(lives)
    values = {"N": 100, "M": 3}
    found = list(plan.offsets.values())
    if plan.placement is not None:
        assert plan.placement.conflicts is None
        given = [evaluate(size, values) for size in plan.placement.sizes]
        places = first_fit(given, None)
        found = [const(places[plan.placement.offsets.index(offset)]) for offset in found]
    total = [evaluate(_aligned(b.size), values) for b in lives[: count + 1]]
    offsets = dict(zip(plan.offsets, map(as_int, found), strict=True))
    _check(lives, offsets, {b.name: evaluate(b.size, values) for b in lives}, sum(total))


def _aligned(size: Expr) -> Expr:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def test_nothing_to_place() -> None:
    plan = plan_memory([])
    assert plan.peak == 0
    assert plan.overhead == 1.0
