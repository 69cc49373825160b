"""The process in which candidates are compiled: `python -m tilewright.driver.tuning.build_worker`.

It answers the requests of `tune/measure/build_pool.py`: a task's folder, a trace or null for the
built-in schedule, the target, and the file to write. A trace is checked before anything is built:
the structure that it gives, and, if it is to be `checked`, that it keeps every dependence. What the
compiler does by itself is not checked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.core.worker.serve import serve
from tilewright.driver.compile_graph import compile_source
from tilewright.driver.kernel.backend import ScheduleProvider, backend_of
from tilewright.driver.options import CompileOptions
from tilewright.driver.tuning.apply_records import RULE
from tilewright.driver.tuning.task_files import read_task
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import parse_trace
from tilewright.target.target import Target
from tilewright.tune.target_key import parse_target

# The graphs of as many tasks stay in memory: candidates of one come together.
_KEPT_TASKS = 2


def build(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile one candidate."""
    graph, precision = _task(request["workload"])
    target = parse_target(request["target"])
    trace, checked = request["trace"], request.get("checked", True)
    schedule = None if trace is None else replaying(trace, checked)
    options = CompileOptions(target, precision, schedules=schedule)
    compile_source(graph, options).write(Path(request["out"]))
    return {}


def replaying(text: str, checked: bool = True) -> ScheduleProvider:
    """The schedule that a trace spells, whatever function it is asked for, if it is legal there."""
    trace = parse_trace(text, "candidate")

    def schedule(func: Func, constants: frozenset[str], target: Target) -> ScheduledFunc:
        made = trace.replay(func)
        verify_func(made)
        if checked and text != str(backend_of(target).schedule(func, constants, target).trace):
            # Imported here because isl takes long to load, and need not be there.
            from tilewright.schedule.legality.check_trace import check_trace

            check_trace(func, trace)
        return ScheduledFunc(made, trace, RULE)

    return schedule


@lru_cache(_KEPT_TASKS)
def _task(folder: str) -> tuple[Graph, str]:
    return read_task(Path(folder))


if __name__ == "__main__":
    serve(build)
