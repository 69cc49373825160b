"""What the compiler did to a model, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.driver.report.step_rows import StepRow, rows_by_kernel
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.passes.context import PassLog, WhyNotFused
from tilewright.runtime.profile import step_work
from tilewright.runtime.roofline.roofline import Roofline


def explain_build(
    build: ModelBuild, rows: Sequence[StepRow], roofline: Roofline | None = None
) -> str:
    """What passes changed, what was not fused and why, kernels with their schedules, the memory.

    `rows` are those of the steps. With the roofline of the machine it also says the least time that
    each kernel can take there.
    """
    log = build.log
    precision = ["\n".join(["precision", *map(str, log.precision)])] if log.precision else []
    kernels = _kernels(build, rows, roofline)
    not_fused = _not_fused(log.not_fused)
    beside = _side_by_side(build)
    return "\n\n".join([_passes(log), *precision, not_fused, kernels, *beside, _memory(build)])


def _passes(log: PassLog) -> str:
    changed = [r for r in log.records if r.changed]
    lines = [f"{r.name:24} {r.nodes_before} -> {r.nodes_after} nodes" for r in changed]
    return "\n".join([f"{len(log.records)} passes, {len(changed)} changed something", *lines])


def _not_fused(pairs: Sequence[WhyNotFused]) -> str:
    """Pairs of producer and consumer that were not fused, counted by operators and reason."""
    counted = Counter(
        (r.producer.partition(" ")[0], r.consumer.partition(" ")[0], r.reason) for r in pairs
    )
    lines = [f"{n:5} x {a} and {b}: {why}" for (a, b, why), n in counted.most_common()]
    return "\n".join([f"{len(pairs)} pairs not fused", *lines])


def _kernels(build: ModelBuild, rows: Sequence[StepRow], roofline: Roofline | None) -> str:
    by_kernel = rows_by_kernel(rows)
    kernels = build.distinct_kernels
    tuned = sum(kernel.rule == "tuned" for kernel in kernels.values())
    counted = f"{len(build.steps)} kernel calls, {len(by_kernel)} distinct kernels"
    lines = [f"{counted}, {tuned} of them tuned" if tuned else counted]
    footprint = float(build.memory.weights.size + build.memory.plan.peak)
    for name, places in by_kernel.items():
        kernel = kernels[name]
        lines.append(f"{name}  x{len(places)}  {schedule_line(schedule_data(kernel))}")
        lines.append(f"    {_work(places[0], roofline, footprint)}")
        lines += [f"    {line}" for line in place_lines(places)]
        lines += [f"      {step}" for step in _steps(kernel)]
    return "\n".join(lines)


def _side_by_side(build: ModelBuild) -> list[str]:
    """The groups of steps that run at once, by number and kernel."""
    groups: dict[int, list[str]] = {}
    for first, step in zip(build.memory.groups, build.steps, strict=True):
        groups.setdefault(first, []).append(step.kernel.name)
    several = {first: names for first, names in groups.items() if len(names) > 1}
    if not several:
        return []
    lines = [
        f"from step {first} on: {', '.join(f'{n} x {name}' for name, n in Counter(names).items())}"
        for first, names in several.items()
    ]
    return ["\n".join([f"{len(several)} groups of kernels run side by side", *lines])]


def schedule_line(schedule: Mapping[str, Any]) -> str:
    """The rule, why it was chosen, and what it decided."""
    why = f": {schedule['why']}" if schedule["why"] else ""
    return f"[{schedule['rule']}{why}]  {'; '.join(schedule['decisions'])}".rstrip()


def place_lines(places: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a kernel computes, and why its neighbours are kernels of their own."""
    more = f", and {len(places) - 1} more places" if len(places) > 1 else ""
    yield f"computes {', '.join(places[0]['nodes'])}{more}"
    reasons = Counter(why for place in places for why in place.get("unfused_reason", ()))
    for why, count in reasons.items():
        yield f"unfused: {why}{f' ({count} times)' if count > 1 else ''}"


def _work(row: Mapping[str, Any], roofline: Roofline | None, footprint: float) -> str:
    text = f"flops {row['flops']}, bytes {row['bytes']}, of which weights {row['weights']}"
    work = step_work(row, {})
    if work is None or roofline is None:
        return text
    bound = roofline.bound(work, footprint)
    return f"{text}; {bound.seconds * 1e3:.4f} ms at least, by {bound.by}"


def _steps(kernel: Kernel) -> list[str]:
    return kernel.trace.splitlines()


def _memory(build: ModelBuild) -> str:
    plan = build.memory.plan
    sizes = f", symbolic sizes taken as {TYPICAL_SIZE}" if plan.placement else ""
    return (
        f"arena {plan.peak} bytes{sizes}; lower bound {plan.lower_bound} "
        f"({plan.overhead:.3f}x); weights {build.memory.weights.size} bytes"
    )
