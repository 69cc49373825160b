"""Random traces: what the primitives accept keeps the meaning of the function."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule.programs import check_same, conv, dense, matmul, softmax
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import Block, Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import blocks, buffers, loops
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import parse_trace

PROGRAMS: tuple[Callable[[], Func], ...] = (
    matmul,
    dense,
    softmax,
    conv,
    lambda: dense(6, 10, 4),
    lambda: conv(9, 2, 3),
)


def _loop(sch: Schedule, rng: Random) -> str:
    return rng.choice([f.name for f in loops(sch.func.body)])


def _block(sch: Schedule, rng: Random) -> Block:
    return rng.choice(list(blocks(sch.func.body)))


def _reorder(sch: Schedule, rng: Random) -> None:
    names = [f.name for f in loops(sch.func.body)]
    at = rng.randrange(len(names))
    chosen = names[at : at + rng.randint(2, 4)]
    rng.shuffle(chosen)
    sch.reorder(*chosen)


def _fuse(sch: Schedule, rng: Random) -> None:
    names = [f.name for f in loops(sch.func.body)]
    at = rng.randrange(len(names))
    sch.fuse(*names[at : at + 2])


def _pad(sch: Schedule, rng: Random) -> None:
    b = _block(sch, rng)
    sch.pad(b.name, rng.choice([it.name for it in b.iters] or ["none"]), rng.choice([2, 4, 8]))


def _cache_read(sch: Schedule, rng: Random) -> None:
    b = _block(sch, rng)
    sch.cache_read(b.name, rng.choice([r.buffer for r in b.reads] or ["x"]), "local")


def _transform(sch: Schedule, rng: Random) -> None:
    b = rng.choice(list(buffers(sch.func).values()))
    block = rng.choice([2, 3, 4])
    axis = rng.randrange(len(b.shape))
    parts = [[a, 0, 0] for a in range(len(b.shape)) if a != axis]
    parts += [[axis, block, 0], [axis, block, 1]]
    rng.shuffle(parts)
    sch.transform_layout(b.name, parts)


STEPS: tuple[Callable[[Schedule, Random], object], ...] = (
    lambda s, r: s.split(_loop(s, r), [None, *r.choices([1, 2, 3, 4, 8], k=r.randint(1, 2))]),
    _reorder,
    _reorder,
    _fuse,
    lambda s, r: s.parallel(_loop(s, r)),
    lambda s, r: s.vectorize(_loop(s, r)),
    lambda s, r: s.unroll(_loop(s, r)),
    lambda s, r: s.inline(_block(s, r).name),
    lambda s, r: s.reverse_inline(_block(s, r).name),
    lambda s, r: s.compute_at(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.compute_at(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.reverse_compute_at(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.reverse_compute_at(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.decompose_reduction(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.rfactor(_block(s, r).name, _loop(s, r)),
    lambda s, r: s.blockize(_loop(s, r)),
    lambda s, r: s.cache_write(_block(s, r).name, "local"),
    _pad,
    _cache_read,
    _transform,
)


def random_schedule(func: Func, rng: Random, tries: int) -> Schedule:
    """A schedule of those random steps that are accepted."""
    sch = Schedule(func)
    for _ in range(tries):
        try:
            rng.choice(STEPS)(sch, rng)
        except ScheduleError as refused:
            str(refused)  # its text must be printable
    return sch


@pytest.mark.parametrize("n", range(len(PROGRAMS)))
@settings(max_examples=12)
@given(seed=st.integers(0, 1 << 30))
def test_accepted_traces_keep_the_meaning(n: int, seed: int) -> None:
    rng = Random(seed)
    func = PROGRAMS[n]()
    sch = random_schedule(func, rng, 25)
    sizes = {"M": rng.randint(1, 9), "N": rng.randint(1, 9), "K": rng.randint(1, 6)}
    check_same(func, sch.func, sizes, exact=False)
    assert parse_func(print_func(sch.func)) == sch.func
    trace = parse_trace(str(sch.trace))
    assert trace == sch.trace
    assert trace.replay(func) == sch.func
