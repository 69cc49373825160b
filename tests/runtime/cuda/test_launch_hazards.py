from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.cuda.launch_hazards import (
    BufferAccess,
    Range,
    dependences,
    transitive_reduction,
)

_RANGE = st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda r: (r[0], r[0] + r[1]))
_RANGES = st.lists(_RANGE, max_size=3).map(tuple)


def _closure(earlier: list[list[int]] | list[set[int]]) -> list[set[int]]:
    """All that has ended when each begins."""
    found: list[set[int]] = []
    for those in earlier:
        found.append(set(those).union(*(found[one] for one in those)))
    return found


def _overlap(one: tuple[Range, ...], two: tuple[Range, ...]) -> bool:
    return any(max(a, c) < min(b, d) for a, b in one for c, d in two)


def _conflict(one: BufferAccess, two: BufferAccess) -> bool:
    return _overlap(one.writes, (*two.reads, *two.writes)) or _overlap(one.reads, two.writes)


def test_every_graph_of_five() -> None:
    pairs = list(itertools.combinations(range(5), 2))
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        earlier: list[set[int]] = [set() for _ in range(5)]
        for (a, b), there in zip(pairs, chosen, strict=True):
            if there:
                earlier[b].add(a)
        kept = transitive_reduction(earlier)
        whole = _closure(earlier)
        assert _closure(kept) == whole
        # none can be left out: no other way leads there
        for number, those in enumerate(kept):
            for one in those:
                assert not any(one in whole[other] for other in those if other != one), number


@given(st.lists(st.builds(BufferAccess, _RANGES, _RANGES), max_size=12))
def test_what_conflicts_waits_and_nothing_else(accesses: list[BufferAccess]) -> None:
    found = dependences(accesses)
    pairs = [
        {i for i in range(n) if _conflict(accesses[i], access)} for n, access in enumerate(accesses)
    ]
    assert _closure(found) == _closure(pairs)
    assert found == transitive_reduction(pairs)


def test_branches_run_side_by_side() -> None:
    x, a, b, y = ((n * 8, n * 8 + 8) for n in range(4))
    branches = [
        BufferAccess((x,), (a,)),
        BufferAccess((x,), (b,)),
        BufferAccess((a, b), (y,)),
    ]
    assert dependences(branches) == [[], [], [0, 1]]


def test_memory_used_again_is_waited_for() -> None:
    x, a, b = ((n * 8, n * 8 + 8) for n in range(3))
    again = [BufferAccess((x,), (a,)), BufferAccess((a,), (b,)), BufferAccess((x,), (a,))]
    assert dependences(again) == [[], [0], [1]]
