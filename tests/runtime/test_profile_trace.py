from __future__ import annotations

import json

from tilewright.runtime.profile import KernelTime, Profile
from tilewright.runtime.profile_trace import chrome_trace
from tilewright.runtime.roofline.roofline import KernelWork


def test_runs_are_lines_in_which_steps_follow_one_another() -> None:
    rows = (
        KernelTime("conv", 1, (2000.0, 3000.0), KernelWork(8.0, 4.0, 0.0, "f32")),
        KernelTime("left_out", 1, (0.0, 1000.0)),
        KernelTime("softmax", 1, (500.0, 500.0)),
    )
    places = tuple({"kernel": r.name, "nodes": [f"node_{r.name}"]} for r in rows)
    trace = json.loads(json.dumps(chrome_trace(Profile(rows, places=places))))
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [(e["tid"], e["name"], e["ts"], e["dur"]) for e in steps] == [
        (1, "conv", 0.0, 2.0),
        (1, "softmax", 2.0, 0.5),
        (2, "conv", 0.0, 3.0),
        (2, "left_out", 3.0, 1.0),
        (2, "softmax", 4.0, 0.5),
    ]
    assert steps[0]["args"] == {"step": 0, "flops": 8.0, "bytes": 4.0, "nodes": ["node_conv"]}
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert names == ["run 1", "run 2"]
    assert chrome_trace(Profile(()))["traceEvents"] == []
