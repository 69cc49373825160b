from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models import mlp
from tilewright.core.errors import Error, LoweringError
from tilewright.driver.compile_graph import lower, optimized_graph
from tilewright.driver.kernel import make_kernel as module
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.kernel.kernel_cache import KernelCache
from tilewright.driver.kernel.make_kernel import make_kernel, schedules_of
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.program.linearize import linearize
from tilewright.driver.tuning.apply_records import RecordedSchedules
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import Trace
from tilewright.target.host import host
from tilewright.tune.tuned_schedules import TunedSchedules


def unscheduled(func: Func, constants: frozenset[str], target: object) -> ScheduledFunc:
    return ScheduledFunc(func, Trace(), "opaque")


@pytest.mark.parametrize("target", ["x86-64-v3", "cuda"])
def test_a_step_goes_through_all_four_stages(target: str) -> None:
    options = make_options(target).timed()
    program = linearize(optimized_graph(mlp(4), options))
    kernel = make_kernel(program.steps[0], options, KernelCache())
    stages = (kernel.lowered.func, kernel.scheduled.func, kernel.finalized)
    names = [[p.name for p in func.params] for func in stages]
    assert names[0] == names[1] == names[2][: len(names[0])]
    assert kernel.scheduled.trace.steps
    assert kernel.finalized != kernel.scheduled.func
    assert f"@{kernel.name}" in kernel.llvm.replace('"', "")
    assert {"lower", "schedule", "finalize", "emit LLVM"} <= set(options.clock.stages)


def test_who_schedules() -> None:
    options = CompileOptions(host())
    backend = backend_of(options.target)
    assert schedules_of(options, backend) is backend.schedule
    tuned = replace(options, records=TunedSchedules([]))
    assert isinstance(schedules_of(tuned, backend), RecordedSchedules)
    assert schedules_of(replace(tuned, schedules=unscheduled), backend) is unscheduled
    build = lower(mlp(4), replace(options, schedules=unscheduled))
    assert {kernel.rule for kernel in build.kernels} == {"opaque"}


def test_errors_say_which_node_they_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise LoweringError("lower.no-expression", "nothing to lower")

    monkeypatch.setattr(module, "lower_kernel", fail)
    with pytest.raises(Error) as caught:
        lower(mlp(4), make_options("x86-64-v3"))
    assert caught.value.loc.node
