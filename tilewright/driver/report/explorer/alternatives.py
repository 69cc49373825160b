"""What other choices of a schedule would cost, where its rule estimates nothing itself.

The kernel is scheduled again with one choice made otherwise, and the tuner's performance model
(`tune/features/performance_model.py`) counts the cycles of both. Only for CPUs, as the model is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.errors import ScheduleError
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import ModelBuild
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.choice_log import ScheduleChoice, ScheduleOption
from tilewright.target.cpu import CpuTarget
from tilewright.tune.features.accesses import statements_of
from tilewright.tune.features.performance_model import estimate_all

# Schedules that are tried for a kernel, and for one choice: each takes as long as the first did.
MAX_TRIED, MAX_OPTIONS = 8, 3


def with_estimates(
    build: ModelBuild, choices: Mapping[str, Sequence[ScheduleChoice]]
) -> dict[str, list[ScheduleChoice]]:
    """The choices of each kernel, with estimated costs if its rule gave none to any of them."""
    found = {name: list(own) for name, own in choices.items()}
    target = build.target
    if not isinstance(target, CpuTarget):
        return found
    steps = {k.name: step for step, k in zip(build.program.steps, build.kernels, strict=True)}
    for kernel in build.distinct_kernels.values():
        step, own = steps[kernel.name], found.get(kernel.name, [])
        if any(c.second is not None for c in own) or kernel.rule in ("tuned", "override"):
            continue
        func = replace(kernel.lowered.func, name=kernel.name)
        constants = frozenset(func.params[i].name for i in step.constants)
        found[kernel.name] = list(_estimated(func, constants, target, kernel, own))
    return found


def _estimated(
    func: Func,
    constants: frozenset[str],
    target: CpuTarget,
    kernel: Kernel,
    choices: Sequence[ScheduleChoice],
) -> Iterator[ScheduleChoice]:
    cycles, left = _cycles(kernel.scheduled.func, target), MAX_TRIED
    for choice in choices:
        tried = choice.others[: min(left, MAX_OPTIONS)]
        left -= len(tried)
        costs = [_otherwise(func, constants, target, choice.name, o.value) for o in tried]
        others = [ScheduleOption(o.value, c) for o, c in zip(tried, costs, strict=True)]
        if any(cost is not None for cost in costs):
            taken = ScheduleOption(choice.taken.value, cycles)
            rest = choice.others[len(tried) :]
            yield replace(choice, taken=taken, others=(*others, *rest), by_rule=False)
        else:
            yield choice


def _otherwise(
    func: Func, constants: frozenset[str], target: CpuTarget, name: str, value: str
) -> float | None:
    """The cycles with one choice made otherwise, `None` where the rule cannot schedule that."""

    def decide(asked: str, default: Any, options: tuple[Any, ...]) -> Any:
        wanted = [o for o in options if str(o) == value]
        return wanted[0] if asked == name and wanted else default

    try:
        return _cycles(schedule_func(func, constants, target, decide).func, target)
    except ScheduleError:
        return None


def _cycles(func: Func, target: CpuTarget) -> float:
    return estimate_all(statements_of(func, buffers(func)), target)[1]
