"""A schedule by hand, as a template, and searched: the same primitives, the same trace."""

from __future__ import annotations

from tests.schedule.programs import check_same, matmul
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import parse_trace
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.tune.space.template import TemplateSpace
from tilewright.tune.space.variation import enumerate_all


def product(sch: Schedule, constants: frozenset[str], target: CpuTarget) -> None:
    """A product in register tiles."""
    lanes = target.lanes(32)
    rows = sch.choose("rows", 4, lambda: (1, 2, 4, 6))
    vectors = sch.choose("vectors", 2, lambda: [n for n in (1, 2, 4) if n * rows <= 12])
    i, row = sch.split("y.i0", [None, rows])
    j, vector, lane = sch.split("y.i1", [None, vectors, lanes])
    sch.reorder(i, j, "y.r0", row, vector, lane)
    for loop in (row, vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction("y", "y.r0")
    sch.parallel(sch.choose("parallel", i, lambda: (i, j)))


def test_a_template_is_a_space() -> None:
    func = matmul(7, 9, 5)
    space = TemplateSpace(func, frozenset(), host(), product)
    found = list(enumerate_all(space))
    assert len(found) == 2 * (3 + 3 + 2 + 2)
    for candidate in found:
        check_same(func, space.func(candidate), {}, exact=False)
        assert space.legal(candidate)
        assert space.parse(space.text(candidate)) == candidate


def test_by_hand_it_gives_the_trace_of_its_defaults() -> None:
    sch = Schedule(matmul(7, 9, 5))
    product(sch, frozenset(), host())
    space = TemplateSpace(matmul(7, 9, 5), frozenset(), host(), product)
    assert space.trace(space.default()) == str(sch.trace)
    assert space.scheduled(space.default()).rule == "template"
    assert parse_trace(str(sch.trace)).replay(matmul(7, 9, 5)) == sch.func
