"""Recorded runs of small plans, for tests: a kernel that reads one buffer and writes another."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.cuda.launch_recorder import LaunchRecorder, placeholders
from tilewright.runtime.cuda.plan_executor import BufferBases, PlanExecutor

ONCE = {"threads": 8, "shared": 0, "maps": [], "loop": "", "steps": 1}
KERNELS = {
    "k": {
        "sizes": ["n"],
        "byte_ranges": [[["mul", "n", 4], []], [["mul", "n", 4], []]],
        "launches": [{"name": "k", "grid": "n", **ONCE, "reads": [0], "writes": [1]}],
    }
}
IN, OUT = ["input", 0, 0], ["output", 0, 8]
A, B = ["arena", 0, 0], ["arena", 16, 0]


def recording(*buffers: tuple[Any, Any]) -> LaunchRecorder:
    """A launch for each pair of buffers, with an input, an output and an arena."""
    recorder = LaunchRecorder(KERNELS)
    x, y, arena = placeholders(3)
    run = PlanExecutor(recorder, KERNELS, {"k": 5}, BufferBases([x], [y], arena, 5000), {}, 0)
    calls = [
        {"do": "call", "step": 0, "kernel": "k", "buffers": list(pair), "sizes": [4]}
        for pair in buffers
    ]
    assert run.do(calls) == 0
    return recorder
