"""What the compiler did, as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.driver.report.step_rows import StepRow, rows_by_kernel
from tilewright.ir.graph.text import print_graph
from tilewright.ir.loop.text import print_func
from tilewright.runtime.profile import step_work
from tilewright.runtime.roofline.roofline import Roofline


def report_data(
    build: ModelBuild, rows: Sequence[StepRow], roofline: Roofline | None = None
) -> dict[str, Any]:
    """Passes, kernels, the memory plan; with a roofline, the least time of each kernel.

    `rows` are those of the steps.
    """
    plan, weights, timings = build.memory.plan, build.memory.weights, build.options.clock
    by_kernel = rows_by_kernel(rows)
    kernels = build.distinct_kernels
    footprint = float(weights.size + plan.peak)
    return {
        "target": build.target.describe(),
        "native_segments": 1,
        "host_operators": {},
        "stages": timings.stages,
        "passes": [asdict(record) for record in timings.passes.records],
        "precision": {
            "allowed": build.precision,
            "products": [*map(str, timings.passes.precision)],
        },
        "kernels": [
            _kernel_data(k, by_kernel[k.name], roofline, footprint) for k in kernels.values()
        ],
        "memory": {
            "arena": plan.peak,
            "lower_bound": plan.lower_bound,
            "overhead": plan.overhead,
            "weights": weights.size,
        },
        "graph": print_graph(build.graph),
    }


def _kernel_data(
    kernel: Kernel, places: Sequence[dict[str, Any]], roofline: Roofline | None, footprint: float
) -> dict[str, Any]:
    first = places[0]
    work = step_work(first, {})
    bound = None if work is None or roofline is None else roofline.bound(work, footprint)
    return {
        "name": kernel.name,
        "calls": len(places),
        **schedule_data(kernel),
        **{key: first[key] for key in ("flops", "bytes", "weights")},
        "least_ms": None if bound is None else bound.seconds * 1e3,
        "bound": None if bound is None else bound.by,
        "places": [
            {key: row.get(key, []) for key in ("nodes", "unfused_reason")} for row in places
        ],
        "trace": kernel.trace.splitlines(),
        "loops": print_func(kernel.scheduled.func),
    }
