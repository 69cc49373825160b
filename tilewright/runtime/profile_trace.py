"""A profile as a trace in Chrome's format, which Perfetto and `chrome://tracing` show.

    {"traceEvents": [{"name": "softmax", "ph": "X", "ts": 0.0, "dur": 2.1, "pid": 1, "tid": 1}]}

Each run is a line of its own, in which the steps follow one another as they were timed; times are
microseconds. Steps that a run left out are not there.
"""

from __future__ import annotations

from typing import Any

from tilewright.runtime.profile import KernelTime, Profile


def chrome_trace(profile: Profile) -> dict[str, Any]:
    """The trace of all runs of a profile."""
    runs = max((len(row.ns) for row in profile.rows), default=0)
    events: list[dict[str, Any]] = []
    for run in range(runs):
        line = {"pid": 1, "tid": run + 1}
        events.append(
            {"name": "thread_name", "ph": "M", **line, "args": {"name": f"run {run + 1}"}}
        )
        start = 0.0
        for step, row in enumerate(profile.rows):
            duration = row.ns[run] / 1e3
            if duration > 0:
                event = {"name": row.name, "ph": "X", "ts": round(start, 3)}
                about = {"step": step, **_about(profile, step, row)}
                events.append({**event, "dur": round(duration, 3), **line, "args": about})
            start += duration
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _about(profile: Profile, step: int, row: KernelTime) -> dict[str, Any]:
    """What is known of a step beside its time."""
    work = {} if row.work is None else {"flops": row.work.flops, "bytes": row.work.bytes}
    nodes = profile.places[step]["nodes"] if step < len(profile.places) else []
    roof = {} if row.of_roof is None else {"of_roof": round(row.of_roof, 3)}
    return {**work, **roof, "nodes": nodes}
