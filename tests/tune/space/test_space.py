"""A space of schedules must fit the interface; the one here is as small as such a space can be."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from tests.schedule.programs import matmul
from tilewright.core.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Trace, parse_trace
from tilewright.tune.candidate import Candidate
from tilewright.tune.space.space import Choose, Illegal, Site, Space, contains, follow
from tilewright.tune.space.variation import crossover, enumerate_all, mutate, sample

# Templates of traces: what is in braces is a decision with these options.
OPTIONS = {"rows": (1, 2, 4), "columns": (1, 2, 4), "width": (2, 4, 0)}
SKETCHES = (
    (("rows", "columns"), 'split("y.i0", [?, {rows}]); split("y.i1", [?, {columns}])'),
    (("width",), 'split("y.i1", [?, {width}]); unroll("y.i1.1")'),
)


class TraceSpace(Space):
    """Traces with decisions left open for a GEMM; which trace to take is a decision too."""

    name = "matmul"

    def build(self, choose: Choose) -> None:
        self._schedule(choose)

    def _schedule(self, choose: Choose) -> Trace:
        names, sketch = SKETCHES[choose(Site("sketch", tuple(range(len(SKETCHES)))))]
        decided = {name: choose(Site(name, OPTIONS[name])) for name in names}
        sch = Schedule(matmul())
        try:
            for step in parse_trace(sketch.format(**decided)):
                sch.apply(step)
        except ScheduleError as error:
            raise Illegal(error.code) from error
        return sch.trace

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([[len(self.text(c))] for c in candidates], dtype=float)

    def text(self, candidate: Candidate) -> str:
        return str(self._schedule(lambda site: dict(candidate.decisions)[site.name]))

    def parse(self, text: str) -> Candidate | None:
        return next((c for c in enumerate_all(self) if self.text(c) == text), None)


def test_every_candidate_is_a_trace_that_replays() -> None:
    space = TraceSpace()
    found = list(enumerate_all(space))
    assert len(found) == 9 + 2  # a split by 0 is illegal
    texts = {space.text(candidate) for candidate in found}
    assert len(texts) == len(found)
    for text in texts:
        parse_trace(text).replay(matmul())


def test_moves_stay_among_them() -> None:
    space, rng = TraceSpace(), Random(0)
    every = set(enumerate_all(space))
    one, two = sample(space, rng), sample(space, rng)
    for _ in range(100):
        assert one is not None
        assert two is not None
        changed, crossed = mutate(space, one, rng), crossover(space, one, two, rng)
        assert {changed, crossed} <= every
        assert changed != one
        one, two = changed, crossed


def test_a_decision_without_options_is_illegal() -> None:
    class Empty(TraceSpace):
        def build(self, choose: Choose) -> None:
            choose(Site("nothing", ()))

    assert follow(Empty(), lambda site: site.options[0]) is None
    assert sample(Empty(), Random(0)) is None
    assert list(enumerate_all(Empty())) == []


def test_a_space_has_a_text_for_records() -> None:
    class Plain(TraceSpace):
        text = Space.text
        parse = Space.parse

        def build(self, choose: Choose) -> None:
            choose(Site("tile", ((None, 8), (None, 4))))
            choose(Site("x", ("a", "b")))

    candidate = Candidate((("tile", (None, 8)), ("x", "a")))
    text = '{"tile":[null,8],"x":"a"}'
    assert Plain().text(candidate) == text
    assert Plain().parse(text) == candidate
    assert contains(Plain(), candidate)
    for other in (
        "",
        "[]",
        '{"tile":[null,8]}',
        '{"tile":[null,2],"x":"a"}',
        text[:-1] + ',"y":1}',
    ):
        assert Plain().parse(other) is None
