from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tests.schedule.programs import matmul
from tilewright.core.errors import ParseError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Step, Trace, parse_trace

NAMES = st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True)
ARGS = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
STEPS = st.builds(Step, NAMES, st.lists(ARGS, max_size=4).map(tuple))


@given(st.lists(STEPS, max_size=5).map(tuple).map(Trace))
def test_text_round_trip(trace: Trace) -> None:
    found = parse_trace(str(trace))
    assert found == trace
    assert str(found) == str(trace)  # where True is not 1


def test_text() -> None:
    sch = Schedule(matmul())
    sch.split("y.i0", (None, 4))
    sch.split("y.i1", [None, 8])
    assert str(sch.trace) == 'split("y.i0", [?, 4])\nsplit("y.i1", [?, 8])\n'
    assert parse_trace(str(sch.trace)).replay(matmul()) == sch.func


def test_steps_may_share_a_line() -> None:
    trace = parse_trace('split("i", [?, 2]); unroll("i.1")  # with a comment')
    assert [s.name for s in trace] == ["split", "unroll"]


@for_each("text", ["split(", 'split("i"', "split 3", "split(v0)", 'split("i",,)'])
def test_syntax_errors(text: str) -> None:
    with pytest.raises(ParseError):
        parse_trace(text)
