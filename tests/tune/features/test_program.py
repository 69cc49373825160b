from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.schedule.programs import conv, dense, matmul, softmax
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.schedule import Schedule
from tilewright.target.registry import CPUS
from tilewright.tune.features.program import ESTIMATE, feature_names, program_features

TARGET = CPUS["aarch64"]
PROGRAMS = {
    "dense": dense(128, 256, 64),
    "softmax": softmax(32, 100),
    "conv": conv(56, 16, 16),
    "symbolic": conv(),
    "empty": dense(0, 8, 8),
    "nothing": parse_func("func @f(x: f32[4], out y: f32[4]) { y[0] = x[0] }"),
}


@for_each("name", PROGRAMS)
@for_each("scheduled", [False, True])
def test_every_program_has_a_row(name: str, scheduled: bool) -> None:
    func = PROGRAMS[name]
    if scheduled and name != "nothing":
        func = schedule_func(func, frozenset({"w"}), TARGET).func
    row = program_features(func, TARGET)
    assert row.shape == (len(feature_names()),)
    assert np.isfinite(row).all()


def test_what_waits_is_on_the_stack() -> None:
    text = "func @f(out y: f32[4]) { alloc t: f32[4] @local t[0] = 1.0 y[0] = t[0] }"
    rows = [
        program_features(parse_func(t), TARGET) for t in (text, text.replace("local", "volatile"))
    ]
    np.testing.assert_array_equal(*rows)


def test_columns_have_different_names() -> None:
    names = feature_names()
    assert len(set(names)) == len(names)
    assert ESTIMATE in names


def test_names_play_no_part() -> None:
    sch = Schedule(matmul(16, 16, 16))
    sch.split("y.i0", [None, 4])
    text = print_func(sch.func)
    for old, new in (("y.", "q."), ("x[", "p["), ("x:", "p:"), ("@mm", "@other")):
        assert old in text
        text = text.replace(old, new)
    np.testing.assert_array_equal(
        program_features(sch.func, TARGET), program_features(parse_func(text), TARGET)
    )


def test_a_schedule_changes_the_row_and_the_estimate() -> None:
    plain = dense(128, 256, 64)
    before = program_features(plain, TARGET)
    after = program_features(schedule_func(plain, frozenset({"w"}), TARGET).func, TARGET)
    place = feature_names().index(ESTIMATE)
    assert after[place] < before[place] - 1  # less than half of the time
    work = feature_names().index("all.ops.fma")
    assert after[work] == pytest.approx(before[work], abs=0.1)
