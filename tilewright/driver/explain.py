"""What the compiler did to a model, as text."""

from __future__ import annotations

from collections import Counter

from tilewright.driver.build import ModelBuild
from tilewright.passes.fuse import fuse_with_report
from tilewright.passes.manager import PassLog
from tilewright.passes.plan_memory import TYPICAL_SIZE


def explain_build(build: ModelBuild, log: PassLog) -> str:
    """What passes changed, what was not fused and why, kernels with their schedules, the memory."""
    return "\n\n".join([_passes(log), _refusals(log), _kernels(build), _memory(build)])


def _passes(log: PassLog) -> str:
    changed = [r for r in log.records if r.changed]
    lines = [f"{r.name:24} {r.nodes_before} -> {r.nodes_after} nodes" for r in changed]
    return "\n".join([f"{len(log.records)} passes, {len(changed)} changed something", *lines])


def _refusals(log: PassLog) -> str:
    """Producers and consumers that fusion left apart, alike ones counted."""
    if log.before_last is None:
        return "fused before"
    _, refusals = fuse_with_report(log.before_last)
    counted = Counter(
        (r.producer.partition(" ")[0], r.consumer.partition(" ")[0], r.reason) for r in refusals
    )
    lines = [f"{n:5} x {a} and {b}: {why}" for (a, b, why), n in counted.most_common()]
    return "\n".join([f"{len(refusals)} pairs not fused", *lines])


def _kernels(build: ModelBuild) -> str:
    uses: dict[str, int] = {}
    for step in build.steps:
        uses[step.kernel.name] = uses.get(step.kernel.name, 0) + 1
    lines = [f"{len(build.steps)} kernel calls, {len(uses)} distinct kernels"]
    seen: set[str] = set()
    for step in build.steps:
        kernel = step.kernel
        if kernel.name in seen:
            continue
        seen.add(kernel.name)
        lines.append(f"{kernel.name}  x{uses[kernel.name]}  [{kernel.rule}]  flops {kernel.flops}")
        lines += [f"    {line}" for line in kernel.trace.splitlines()]
    return "\n".join(lines)


def _memory(build: ModelBuild) -> str:
    plan = build.plan
    assert plan is not None
    sizes = f", symbolic sizes taken as {TYPICAL_SIZE}" if plan.placement else ""
    return (
        f"arena {plan.peak} bytes{sizes}; lower bound {plan.lower_bound} "
        f"({plan.overhead:.3f}x); weights {build.weights.size} bytes"
    )
