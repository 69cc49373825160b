from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedule.programs import matmul
from tilewright.core.errors import ParseError, ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import OPEN, Ref, Step, Trace, parse_trace

NAMES = st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True)
ARGS = st.recursive(
    st.none() | st.integers(-99, 99) | st.text(max_size=8) | NAMES.map(Ref),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
DECIDED = st.just(OPEN) | ARGS.filter(lambda a: a is not None)
STEPS = st.builds(Step, NAMES, st.lists(ARGS, max_size=4).map(tuple)) | st.builds(
    Step, NAMES, st.lists(ARGS, max_size=4).map(tuple), NAMES, DECIDED
)


@given(st.lists(STEPS, max_size=5).map(tuple).map(Trace))
def test_text_round_trip(trace: Trace) -> None:
    assert parse_trace(str(trace)) == trace


def test_text() -> None:
    sch = Schedule(matmul(), seed=3)
    tile = sch.sample_tile("y.i0", 2, 16)
    sch.split("y.i0", tile)
    sch.split("y.i1", [None, 8])
    inner = tile.value[1]
    assert str(sch.trace) == (
        f'v0 = sample_tile("y.i0", 2, 16) -> [?, {inner}]\n'
        'split("y.i0", v0)\n'
        'split("y.i1", [?, 8])\n'
    )
    assert parse_trace(str(sch.trace)).replay(matmul()) == sch.func


def test_steps_may_share_a_line() -> None:
    trace = parse_trace('split("i", [?, 2]); unroll("i.1")  # with a comment')
    assert [s.name for s in trace] == ["split", "unroll"]


def test_decisions_are_changed_without_touching_what_uses_them() -> None:
    trace = parse_trace('v0 = sample_tile("y.i0", 2, 16) -> [?, 4]\nsplit("y.i0", v0)')
    changed = trace.decide("v0", (None, 2))
    assert "serial(2)" in _text(changed)
    reopened = trace.decide("v0", OPEN)
    assert str(reopened).startswith('v0 = sample_tile("y.i0", 2, 16) -> ?\n')
    assert reopened.replay(matmul(), seed=1) == reopened.replay(matmul(), seed=1)
    drawn = {_text(reopened, seed) for seed in range(20)}
    assert len(drawn) > 1
    with pytest.raises(ScheduleError):
        trace.decide("v1", OPEN)


def _text(trace: Trace, seed: int = 0) -> str:
    from tilewright.ir.loop.text import print_func

    return print_func(trace.replay(matmul(), seed=seed))


@pytest.mark.parametrize(
    "text", ["split(", 'split("i"', "split 3", "v0 = split(1)", 'split("i",,)']
)
def test_syntax_errors(text: str) -> None:
    with pytest.raises(ParseError):
        parse_trace(text)


def test_unknown_decision() -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_trace('split("y.i0", v7)').replay(matmul())
    assert caught.value.code == "trace.decision"
