"""Everything the compiler knows of a model, as one JSON document; the explorer's page shows it.

    schema     "tilewright-explorer/1"
    model      {"name", "target", "precision", "threads", "measured" (whether times were)}
    totals     {"calls", "kernels", "min_ms", "least_ms", "outside_ms", "arena", "weights"}
    stages     {stage of the compilation: seconds}
    passes     [{"name", "what", "ms", "changed", "graph" (number of the graph after it)}]
    nodes      [[operator, results, operands, type, attributes, name in the model, weights]]
    graphs     [{"inputs", "outputs", "nodes" (numbers), "groups": [{"name", "step", "nodes"
               (positions)}]}]: the first is the model as it was imported
    kernels    [{"name", "rule", "why", "decisions", "choices", "steps" (numbers), "flops", "bytes",
               "min_ms", "median_ms", "least_ms", "bound", "of_roof", "text"}]: times of all calls
               together; `text` names the kernel's texts, see `kernel_texts.py`
    steps      [{"kernel", "nodes", "outputs", "group", "min_ms" (in the fastest run), "least_ms"}],
               in order; those of one group run at once
    unfused    [{"producer", "consumer", "reason", "from", "to" (steps, -1 for none)}]
    memory     {"arena", "lower_bound", "weights", "symbolic", "buffers": [{"name", "size",
               "offset", "first", "last"}]}
    timeline   [an event of Chrome's trace format]
    roofline   what the machine can do at best, `null` if it is not known

What is not known is `null`. `choices` are those of the schedule: {"name", "taken", "cost",
"second", "second_cost", "others", "by_rule"}; a cost is what the rule estimates, in a unit of its
own, or cycles by the tuner's performance model where the rule estimates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.arith.expr import as_int
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.pipeline import all_passes
from tilewright.driver.report.explorer.graph_stages import GraphStages
from tilewright.driver.report.explorer.timeline import timeline
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.driver.report.step_rows import step_nodes, step_rows
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.manager import pass_doc
from tilewright.runtime.profile import Profile, step_work
from tilewright.runtime.roofline.roofline import Bound, Roofline
from tilewright.schedule.choice_log import ScheduleChoice

SCHEMA = "tilewright-explorer/1"


@dataclass(frozen=True)
class ExploredModel:
    """A built model, and what else was found out about it.

    `choices` are those of its schedules, by kernel. `build.log.graphs` has the graphs.
    """

    name: str
    build: ModelBuild
    choices: Mapping[str, Sequence[ScheduleChoice]] = field(default_factory=dict)
    roofline: Roofline | None = None
    profile: Profile | None = None
    threads: int = 0

    def text_name(self, kernel: int) -> str:
        """How the texts of a kernel are called, by its number."""
        return f"kernel-{kernel}"


def explorer_document(model: ExploredModel) -> dict[str, Any]:
    """The document of a model."""
    build = model.build
    times = _step_times(model)
    graphs, passes = _graphs(build)
    kernels = _kernels(model, times)
    numbers = {name: i for i, name in enumerate(build.distinct_kernels)}
    steps = [
        {
            "kernel": numbers[step.kernel.name],
            "nodes": step_nodes(step),
            "outputs": list(step.node.outputs),
            "group": group,
            **_milliseconds(time),
        }
        for step, group, time in zip(build.steps, build.memory.groups, times, strict=True)
    ]
    return {
        "schema": SCHEMA,
        "model": {
            "name": model.name,
            "target": build.target.describe(),
            "precision": build.precision,
            "threads": model.threads,
            "measured": model.profile is not None,
        },
        "totals": _totals(model, times),
        "stages": build.options.clock.stages,
        "passes": passes,
        **graphs.data(),
        "kernels": kernels,
        "steps": steps,
        "unfused": _unfused(build, graphs),
        "memory": _memory(build),
        "timeline": timeline(steps, [k["name"] for k in kernels], model.profile is not None),
        "roofline": None if model.roofline is None else model.roofline.data(),
    }


@dataclass(frozen=True)
class _StepTime:
    """Milliseconds of one step in the fastest run, and its bound, as far as known."""

    measured: float | None
    bound: Bound | None


def _step_times(model: ExploredModel) -> list[_StepTime]:
    if model.profile is not None:
        rows = model.profile.rows
        runs = list(zip(*(row.ns for row in rows), strict=True))
        fastest = min(runs, key=sum, default=())
        return [_StepTime(ns / 1e6, row.bound) for ns, row in zip(fastest, rows, strict=True)]
    memory, roofline = model.build.memory, model.roofline
    footprint = float(memory.weights.size + memory.plan.peak)
    works = [step_work(row, {}) for row in step_rows(model.build)]
    return [
        _StepTime(None, None if w is None or roofline is None else roofline.bound(w, footprint))
        for w in works
    ]


def _milliseconds(time: _StepTime) -> dict[str, float | None]:
    return {
        "min_ms": time.measured,
        "least_ms": None if time.bound is None else time.bound.seconds * 1e3,
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _totals(model: ExploredModel, times: Sequence[_StepTime]) -> dict[str, Any]:
    profile, memory = model.profile, model.build.memory
    bounds = [_milliseconds(time)["least_ms"] for time in times]
    return {
        "calls": len(model.build.steps),
        "kernels": len(model.build.distinct_kernels),
        "min_ms": None if profile is None else profile.kernels_ns / 1e6,
        "least_ms": _sum(bounds),
        "outside_ms": None if profile is None else profile.outside_ns / 1e6,
        "arena": memory.plan.peak,
        "weights": memory.weights.size,
    }


def _kernels(model: ExploredModel, times: Sequence[_StepTime]) -> list[dict[str, Any]]:
    build, rows = model.build, step_rows(model.build)
    calls: dict[str, list[int]] = {}
    for number, step in enumerate(build.steps):
        calls.setdefault(step.kernel.name, []).append(number)
    together = {} if model.profile is None else {r.name: r for r in model.profile.by_kernel()}
    found = []
    for number, (name, kernel) in enumerate(build.distinct_kernels.items()):
        own = [times[i] for i in calls[name]]
        bounds = [time.bound for time in own if time.bound is not None]
        longest = max(bounds, key=lambda b: b.seconds, default=None)
        measured = together.get(name)
        found.append(
            {
                "name": name,
                **schedule_data(kernel),
                "choices": [_choice(c) for c in model.choices.get(name, ()) if c.others],
                "steps": calls[name],
                **{key: rows[calls[name][0]][key] for key in ("flops", "bytes", "weights")},
                "min_ms": None if measured is None else measured.least / 1e6,
                "median_ms": None if measured is None else measured.median / 1e6,
                "least_ms": _sum([_milliseconds(time)["least_ms"] for time in own]),
                "bound": None if longest is None else longest.by,
                "of_roof": None if measured is None else measured.of_roof,
                "text": model.text_name(number),
            }
        )
    return found


def _choice(choice: ScheduleChoice) -> dict[str, Any]:
    second = choice.second
    return {
        "name": choice.name,
        "taken": choice.taken.value,
        "cost": choice.taken.cost,
        "second": None if second is None else second.value,
        "second_cost": None if second is None else second.cost,
        "others": [option.value for option in choice.others],
        "by_rule": choice.by_rule,
    }


def _graphs(build: ModelBuild) -> tuple[GraphStages, list[dict[str, Any]]]:
    """The graphs, and the passes with the number of the graph after each."""
    kept: list[Graph] = build.log.graphs or [build.graph]
    # Outputs get the names that the model has for them after the last pass.
    pairs = zip(build.graph.nodes, kept[-1].nodes, strict=True)
    names = {named.name: before.name for named, before in pairs}
    steps = {names.get(s.node.name, s.node.name): number for number, s in enumerate(build.steps)}
    stages, docs = GraphStages(steps), {n: pass_doc(p) for n, p in all_passes().items()}
    now, passes = stages.add(kept[0], final=kept[0] is kept[-1]), []
    for before, after, record in zip(kept, kept[1:], build.log.records, strict=False):
        now = stages.add(after, before, after is kept[-1]) if after is not before else now
        passes.append(
            {
                "name": record.name,
                "what": docs.get(record.name, ""),
                "ms": record.seconds * 1e3,
                "changed": record.changed,
                "graph": now,
            }
        )
    return stages, passes


def _unfused(build: ModelBuild, graphs: GraphStages) -> list[dict[str, Any]]:
    """Why pairs were not fused, with the steps that compute them now."""
    rows, last = list(graphs.rows), graphs.graphs[-1]
    step_of = {
        value: group["step"]
        for group in last["groups"]
        for position in group["nodes"]
        for value in rows[last["nodes"][position]][1]
    }
    return [
        {
            "producer": pair.producer,
            "consumer": pair.consumer,
            "reason": pair.reason,
            "from": step_of.get(pair.producer.partition(" ")[2], -1),
            "to": step_of.get(pair.consumer.partition(" ")[2], -1),
        }
        for pair in build.log.not_fused
    ]


def _memory(build: ModelBuild) -> dict[str, Any]:
    plan = build.memory.plan
    buffers = [
        {
            "name": b.name,
            "size": as_int(b.size),
            "offset": as_int(plan.offsets[b.name]),
            "first": b.first,
            "last": b.last,
        }
        for b in build.memory.live_ranges
    ]
    return {
        "arena": plan.peak,
        "lower_bound": plan.lower_bound,
        "weights": build.memory.weights.size,
        "symbolic": plan.placement is not None,
        "buffers": [] if plan.placement is not None else buffers,
    }
