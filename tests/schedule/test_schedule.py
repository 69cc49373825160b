from __future__ import annotations

import time

import pytest

from tests.schedule.programs import check_schedule, dense, matmul, refused
from tilewright.core.config import override
from tilewright.core.errors import LegalityError, ScheduleError, VerifyError
from tilewright.schedule.primitives import table
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Step, Trace


def _twelve_steps() -> Schedule:
    sch = Schedule(dense())
    sch.inline("add")
    sch.pad("mm", "i0", 4)
    i, j = sch.split("mm.i0", [None, 4]), sch.split("mm.i1", [None, 6])
    sch.reorder(i[0], j[0], "mm.r0", i[1], j[1])
    sch.reverse_compute_at("y", j[0])
    sch.decompose_reduction("mm", "mm.r0")
    sch.vectorize(j[1])
    sch.unroll(i[1])
    sch.parallel(sch.fuse(i[0], j[0]))
    sch.transform_layout("w", [[1, 6, 0], [0, 0, 0], [1, 6, 1]])
    return sch


def test_a_whole_schedule() -> None:
    sch = _twelve_steps()
    assert len(sch.trace) == 12
    check_schedule(sch, dense(), exact=False)


def test_replay_is_fast() -> None:
    before, trace = dense(), _twelve_steps().trace
    with override(verify=0):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            trace.replay(before)
            times.append(time.perf_counter() - start)
    assert min(times) < 0.05  # 4 ms on an idle core


def test_named_arguments() -> None:
    sch = Schedule(matmul())
    sch.split("y.i0", factors=[None, 4])
    assert str(sch.trace) == 'split("y.i0", [?, 4])\n'


def test_refused_steps_leave_no_trace() -> None:
    sch = Schedule(matmul())
    before = sch.func
    refused("vectorize.reduction", Schedule(matmul(4, 4, 4)).vectorize, "y.r0")
    refused("reorder.twice", sch.reorder, "y.i0", "y.i0")
    assert sch.func is before
    assert len(sch.trace) == 0


def test_errors_name_step_and_place() -> None:
    sch = Schedule(dense())
    sch.inline("add")
    text = refused("fuse.not-nested", sch.fuse, "mm.i0", "y.i0")
    assert 'in fuse("mm.i0", "y.i0"), trace step 2' in text
    assert "for y.i0 in serial(M) {" in text
    assert "^^^^" in text


def test_unknown_names() -> None:
    sch = Schedule(matmul())
    with pytest.raises(AttributeError, match="spilt"):
        sch.spilt("y.i0")
    with pytest.raises(ScheduleError) as caught:
        Trace((Step("spilt", ("y.i0",)),)).replay(matmul())
    assert caught.value.code == "trace.step"
    with pytest.raises(ScheduleError) as caught:
        Trace((Step("split", ("y.i0",)),)).replay(matmul())
    assert caught.value.code == "trace.arguments"
    assert "split" in dir(sch)


def test_every_step_is_verified(monkeypatch) -> None:
    def broken(func, loop):
        from dataclasses import replace

        return replace(func, outputs=())

    monkeypatch.setattr(table, "rewrite_of", lambda name: broken)
    monkeypatch.setattr("tilewright.schedule.schedule.rewrite_of", lambda name: broken)
    with pytest.raises(VerifyError):
        Schedule(matmul()).unroll("y.i0")


def test_legality_is_checked_when_asked() -> None:
    from tests.schedule.legality.test_dependences import WAVE
    from tilewright.ir.loop.text import parse_func

    func = parse_func(WAVE)
    Schedule(func).reorder("j", "i")
    with pytest.raises(LegalityError):
        Schedule(func, legality=True).reorder("j", "i")


def test_schedules_that_are_searched_share_their_beginnings() -> None:
    before = matmul()

    def made(rows: int) -> list[object]:
        sch = Schedule(before, decide=lambda name, default, options: default)
        inner = sch.split("y.i0", [None, 4])[1]
        functions = [sch.func]
        sch.split("y.i1", [None, rows])
        sch.unroll(inner)
        return [*functions, sch.func]

    one, two, three = made(2), made(8), made(2)
    assert one[0] is two[0]
    assert one[1] is three[1]
    assert one[1] != two[1]
    plain = Schedule(before)
    plain.split("y.i0", [None, 4])
    assert plain.func is not one[0]
    assert plain.func == one[0]
