"""When each step of a model runs, as events of Chrome's trace format (also read by Perfetto).

Steps follow one another; those of one group begin together, each on a line of its own. Durations
are those that were measured, else the least that the roofline allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def timeline(
    steps: Sequence[Mapping[str, Any]], kernels: Sequence[str], measured: bool
) -> list[dict[str, Any]]:
    """One event a step; times are microseconds."""
    events: list[dict[str, Any]] = []
    start = end = 0.0
    lane, group = 0, -1
    for number, step in enumerate(steps):
        if step["group"] != group:
            start, lane, group = end, 0, step["group"]
        duration = (step["min_ms" if measured else "least_ms"] or 0.0) * 1e3
        events.append(
            {
                "name": kernels[step["kernel"]],
                "ph": "X",
                "ts": round(start, 4),
                "dur": round(duration, 4),
                "pid": 1,
                "tid": lane,
                "args": {"step": number, "nodes": step["nodes"]},
            }
        )
        end, lane = max(end, start + duration), lane + 1
    return events
