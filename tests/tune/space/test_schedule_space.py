from __future__ import annotations

from random import Random

import pytest

from tests.schedule.programs import matmul
from tilewright.core.errors import LegalityError, ScheduleError
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.schedule.trace import parse_trace
from tilewright.target.host import host
from tilewright.tune.candidate import Candidate
from tilewright.tune.space.schedule_space import KEPT_FUNCTIONS, ScheduleSpace, _keep
from tilewright.tune.space.space import follow
from tilewright.tune.space.variation import enumerate_all, sample


class Rows(ScheduleSpace):
    """The rows of a product in parts of some size, perhaps in an order that is none."""

    name = "rows"
    made = 0

    def make(self, decide: Decide) -> ScheduledFunc:
        self.made += 1
        sch = Schedule(self.func_before, decide=decide)
        size = sch.choose("size", 4, lambda: (0, 2, 4, 8))
        _, inner = sch.split("y.i0", [None, size])
        if sch.choose("unroll", False, lambda: (False, True) if size < 8 else (False,)):
            sch.unroll(inner)
        return ScheduledFunc(sch.func, sch.trace, "fallback")


def _space() -> Rows:
    return Rows(matmul(), frozenset(), host())


def test_a_candidate_is_its_decisions_and_one_answer_is_no_question() -> None:
    space = _space()
    found = list(enumerate_all(space))
    assert [c.decisions for c in found][-1] == (("size", 8),)
    assert len(found) == 5  # no split by 0
    assert space.default().decisions == (("size", 4), ("unroll", False))


def test_defaults_are_drawn_three_times_as_often_as_all_else() -> None:
    space, rng = _space(), Random(0)
    drawn = [dict(sample(space, rng).decisions)["size"] for _ in range(300)]
    assert 0.7 < drawn.count(4) / len(drawn) < 0.9  # draws of 0 are made again


def test_the_text_is_a_trace_with_its_decisions() -> None:
    space = _space()
    text = space.text(space.default())
    assert text == '# decisions: {"size":4,"unroll":false}\nsplit("y.i0", [?, 4])\n'
    assert str(parse_trace(text)) == space.trace(space.default())
    assert space.parse(text) == space.default()
    for other in ("", text.replace("4]", "2]"), text.replace("false", "1.5"), "split"):
        assert space.parse(other) is None


def test_what_was_just_made_is_not_made_again() -> None:
    space = _space()
    candidate = sample(space, Random(0))
    made = space.made
    space.func(candidate)
    space.trace(candidate)
    assert space.features([candidate]).shape == (1, space.features([candidate]).size)
    assert space.made == made
    space._made.clear()
    assert space.build(lambda site: dict(candidate.decisions)[site.name]) is None
    assert space.made == made  # what it asks is known
    space.func(candidate)
    assert space.made == made + 1


def test_what_is_kept_is_bounded() -> None:
    known: dict[Candidate, int] = {}
    for number in range(KEPT_FUNCTIONS + 1):
        _keep(known, Candidate((("size", number),)), number)
    assert [*known.values()] == [*range(1, KEPT_FUNCTIONS + 1)]


class Shifted(Rows):
    """A producer after its reader: wrong, though every block is sound."""

    def make(self, decide: Decide) -> ScheduledFunc:
        scheduled = super().make(decide)
        return ScheduledFunc(scheduled.func, parse_trace('vectorize("y.r0")'), "fallback")


def test_what_is_not_legal_says_why() -> None:
    space = Shifted(matmul(), frozenset(), host())
    with pytest.raises((LegalityError, ScheduleError)):
        space.check(space.default())
    assert not space.legal(space.default())
    assert _space().legal(_space().default())


def test_no_question_twice() -> None:
    class Twice(Rows):
        def make(self, decide: Decide) -> ScheduledFunc:
            super().make(decide)
            return super().make(decide)

    with pytest.raises(AssertionError, match="twice"):
        follow(Twice(matmul(), frozenset(), host()), lambda site: site.options[-1])
