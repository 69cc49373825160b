"""What the compiler did, as data for programs and as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from tilewright.arith.expr import as_int
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.report.explain import place_lines, schedule_line
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.driver.report.step_rows import StepRow, rows_by_kernel
from tilewright.ir.graph.text import print_graph
from tilewright.ir.loop.text import print_func
from tilewright.runtime.profile import step_work
from tilewright.runtime.roofline.roofline import Roofline

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; } th, td { padding: .15em .8em; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr:nth-child(even) { background: #8881; }
pre { background: #8881; padding: .8em; overflow-x: auto; font-size: 12.5px; }
summary { cursor: pointer; padding: .2em 0; } summary small { opacity: .7; }
svg { width: 100%; height: 20em; background: #8881; } rect { stroke: #fff; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #dde; } }
"""


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


def report_page(
    title: str,
    build: ModelBuild,
    rows: Sequence[StepRow],
    roofline: Roofline | None = None,
) -> str:
    """The page."""
    data = report_data(build, rows, roofline)
    memory = data["memory"]
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(data['target'])}. {len(build.steps)} kernel calls, {len(data['kernels'])} "
        f"distinct kernels. Arena {memory['arena']} bytes, {memory['overhead']:.3f} times "
        f"its lower bound; weights {memory['weights']} bytes.</p>",
        "<h2>Passes</h2>",
        _passes(data["passes"]),
        "<h2>Kernels</h2>",
        *map(_kernel, data["kernels"]),
        "<h2>Memory</h2>",
        _memory(build),
        "<h2>Graph</h2>",
        _fold("the graph after all passes", data["graph"]),
    ]
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{_STYLE}</style>"
    return (
        f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"
    )


def _passes(records: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(r['name'])}<td>{r['seconds'] * 1e3:.1f}"
        f"<td>{r['nodes_before']}<td>{r['nodes_after'] if r['changed'] else 'unchanged'}"
        for r in records
    )
    return f"<table><tr><th>pass<th>ms<th>nodes before<th>after{rows}</table>"


def _kernel(k: dict[str, Any]) -> str:
    least = "" if k["bound"] is None else f", {k['least_ms']:.4f} ms at least, by {k['bound']}"
    line = (
        f"{escape(k['name'])} <small>called {k['calls']} times, schedule {escape(k['rule'])}, "
        f"{escape(str(k['flops']))} operations, {escape(str(k['bytes']))} bytes{least}</small>"
    )
    places = escape("\n".join(place_lines(k["places"])))
    trace = escape("\n".join(k["trace"]) or "(no steps)")
    body = (
        f"<pre>{escape(schedule_line(k))}\n{places}</pre>"
        f"<h4>Schedule</h4><pre>{trace}</pre><h4>Loops</h4><pre>{escape(k['loops'])}</pre>"
    )
    return f"<details><summary>{line}</summary>{body}</details>"


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def _memory(build: ModelBuild) -> str:
    """The arena as a picture: steps from left to right, bytes from bottom to top."""
    plan = build.memory.plan
    peak, steps = plan.peak, len(build.steps)
    if not peak or not steps or plan.placement is not None:
        return "<p>Places depend on symbolic sizes; compile with sizes given to see them.</p>"
    boxes = []
    for number, b in enumerate(build.memory.live_ranges):
        size, start = as_int(b.size) or 0, as_int(plan.offsets[b.name]) or 0
        x, width = 1000 * b.first / steps, 1000 * (b.last + 1 - b.first) / steps
        y, height = 300 - 300 * (start + size) / peak, 300 * size / peak
        text = f"{escape(b.name)}: {size} bytes at {start}, steps {b.first} to {b.last}"
        boxes.append(
            f"<rect x='{x:.2f}' y='{y:.2f}' width='{width:.2f}' height='{height:.2f}' "
            f"fill='hsl({number * 47 % 360} 55% 55%)'><title>{text}</title></rect>"
        )
    view = "viewBox='0 0 1000 300' preserveAspectRatio='none'"
    return f"<svg {view}>{''.join(boxes)}</svg><p>Point at a box for its name.</p>"
