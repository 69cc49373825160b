"""Everything that has a name, as tables: what `tilewright list` prints and the reference shows.

A row is a dictionary; its first column is the name, `summary` says what it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields

Row = dict[str, str]


def ops() -> list[Row]:
    """Operators of the graph."""
    from tilewright.ops.registry import op_table

    return [
        {"name": op.name, "summary": op.doc, "kind": op.kind, "attributes": _attributes(op.attrs)}
        for op in sorted(op_table().values(), key=lambda op: op.name)
    ]


def _attributes(cls: type) -> str:
    return ", ".join(
        f.name if f.default is MISSING else f"{f.name}={f.default}" for f in fields(cls)
    )


def onnx() -> list[Row]:
    """ONNX operators that are read directly; others are read where ONNX defines them by these."""
    from tilewright.frontends.onnx.segments.host.table import host_ops
    from tilewright.frontends.onnx.table import converters

    native, host = converters(), host_ops()
    where = {name: "native" for name in native}
    where.update((name, "native, host" if name in native else "host") for name in host)
    return [
        {"name": name, "summary": _first_line({**host, **native}[name]), "runs": where[name]}
        for name in sorted(where)
    ]


def passes() -> list[Row]:
    """Graph passes, in the order in which they first run."""
    from tilewright.driver.pipeline import PIPELINES, all_passes
    from tilewright.passes.manager import pass_doc

    return [
        {"name": name, "summary": pass_doc(p)}
        | {kind: _positions(pipeline, p) for kind, pipeline in PIPELINES.items()}
        for name, p in all_passes().items()
    ]


def _positions(pipeline: Sequence[object], p: object) -> str:
    """Where in a list something stands, counted from 1; empty if it does not."""
    return ", ".join(str(n) for n, other in enumerate(pipeline, 1) if other is p)


def primitives() -> list[Row]:
    """Steps of a schedule."""
    from tilewright.schedule.primitives.table import PRIMITIVES, rewrite_of

    rows = []
    for name in PRIMITIVES:
        function = rewrite_of(name)
        arguments = ", ".join(list(inspect.signature(function).parameters)[1:])
        rows.append({"name": name, "summary": _first_line(function), "arguments": f"({arguments})"})
    return rows


def targets() -> list[Row]:
    """Machines to compile for."""
    from tilewright.target.registry import resolve_target, target_names

    return [{"name": name, "summary": resolve_target(name).describe()} for name in target_names()]


def switches() -> list[Row]:
    """Environment variables; `core.config.override` sets the same for a block of code."""
    from tilewright.core.config import SWITCHES

    return [
        {"name": s.name, "summary": s.meaning, "values": s.type, "default": s.default or "(empty)"}
        for s in SWITCHES
    ]


def errors() -> list[Row]:
    """Error codes."""
    from tilewright.cli.error_codes import error_codes

    return [
        {"name": e.code, "summary": e.message, "class": e.kind, "help": e.help}
        for e in error_codes()
    ]


def engines() -> list[Row]:
    """What `tilewright bench --against` compares with."""
    from tilewright.bench.engines import ENGINES

    return [
        {"name": name, "summary": one.summary, "installed": "yes" if one.installed else "no"}
        for name, one in ENGINES.items()
    ]


def strategies() -> list[Row]:
    """Ways to search for a schedule."""
    from tilewright.tune.strategy.table import STRATEGIES

    return [
        {"name": n, "summary": s, "model": "yes" if STRATEGIES.get(n).uses_model else "no"}
        for n, s in STRATEGIES.describe()
    ]


def cost_models() -> list[Row]:
    """What guesses how fast a candidate is."""
    from tilewright.tune.cost.table import COST_MODELS

    return [{"name": name, "summary": summary} for name, summary in COST_MODELS.describe()]


def task_schedulers() -> list[Row]:
    """What decides which of a model's kernels is tuned next."""
    from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS

    return [{"name": name, "summary": summary} for name, summary in TASK_SCHEDULERS.describe()]


def recorded_spaces() -> list[Row]:
    """Recorded (tabular) spaces for `tilewright lab`."""
    from tilewright.tune.space.table import SPACES, tabular_space

    return [
        {"name": name, "summary": summary, "configurations": str(len(tabular_space(name)))}
        for name, summary in SPACES.items()
    ]


def schedule_spaces() -> list[Row]:
    """Spaces of schedules for `tilewright tune`."""
    from tilewright.tune.space.table import SCHEDULE_SPACES

    return [{"name": name, "summary": summary} for name, summary in SCHEDULE_SPACES.describe()]


def methods() -> list[Row]:
    """Published methods; the page `docs/methods.md` has files, experiments and results."""
    from tilewright.methods.table import METHODS

    return [
        {"name": m.name, "summary": m.idea, "published": m.published, "state": m.state}
        for m in METHODS
    ]


CATALOG: dict[str, Callable[[], list[Row]]] = {
    "ops": ops,
    "onnx": onnx,
    "passes": passes,
    "primitives": primitives,
    "targets": targets,
    "switches": switches,
    "errors": errors,
    "engines": engines,
    "strategies": strategies,
    "cost-models": cost_models,
    "task-schedulers": task_schedulers,
    "recorded-spaces": recorded_spaces,
    "schedule-spaces": schedule_spaces,
    "methods": methods,
}


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]
