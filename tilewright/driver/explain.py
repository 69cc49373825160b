"""What the compiler did to a model, as text."""

from __future__ import annotations

from tilewright.driver.build import ModelBuild
from tilewright.passes.plan_memory import TYPICAL_SIZE


def explain_build(build: ModelBuild) -> str:
    """Kernels with their schedules, and the memory plan."""
    return "\n".join([_kernels(build), "", _memory(build)])


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
