"""Training data of a cost model from records: the programs that were measured, task by task.

A record has the workload and the trace, from which the program is rebuilt, and with it the features
that this version has. Times under different conditions are different tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from tilewright.core.errors import ConfigError, Error
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.trace import parse_trace
from tilewright.target.target import Target
from tilewright.tune.cost.pretrained import Measured
from tilewright.tune.features.program import features_for
from tilewright.tune.records import Pairs, Record, Records
from tilewright.tune.target_key import is_similar, parse_target
from tilewright.tune.workload import parse_workload

# Of each task the newest so many programs: making one again takes some milliseconds.
MAX_PROGRAMS_PER_TASK = 128
# With fewer there is no order to learn.
MIN_PROGRAMS = 8


def recorded_tasks(records: Records, target: Target) -> list[Measured]:
    """Features and seconds of each task that was measured on machines like `target`."""
    texts = records.workloads()
    found: dict[tuple[str, str, Pairs], dict[str, Record]] = {}
    for record in records:
        if not record.baseline and record.workload in texts and is_similar(record.target, target):
            task = (record.workload, record.target, record.conditions)
            found.setdefault(task, {})[record.trace] = record
    tasks = (
        _measured(
            texts[workload], parse_target(where), [*programs.values()][-MAX_PROGRAMS_PER_TASK:]
        )
        for (workload, where, _), programs in found.items()
    )
    return [task for task in tasks if np.isfinite(task[1]).sum() >= MIN_PROGRAMS]


def read_training_data(path: Path, target: Target) -> list[Measured]:
    """The tasks of a file of records; an error if there are none for the target."""
    with Records(path, read_only=True) as records:
        tasks = recorded_tasks(records, target)
    if not tasks:
        raise ConfigError(
            "cost.too-few-records",
            f"{path} has no task of this machine with {MIN_PROGRAMS} measurements to learn from",
            help="tune something first, or leave it out",
        )
    return tasks


def _measured(workload: str, target: Target, records: Iterable[Record]) -> Measured:
    """The rows of programs that can still be made; infinite seconds for what failed."""
    rows, seconds = [], []
    try:
        func, _ = parse_workload(workload)
    except Error:  # of another version: nothing is learnt from it
        return np.empty((0, 0)), np.empty(0)
    for row, record in filter(None, map(partial(_row, func, target), records)):
        rows.append(row)
        fine = record.times and not record.failure
        seconds.append(median(record.times) if fine else math.inf)
    return np.array(rows), np.array(seconds)


def _row(func: Func, target: Target, record: Record) -> tuple[np.ndarray, Record] | None:
    try:
        return features_for(parse_trace(record.trace).replay(func), target), record
    except Error:  # a trace that no longer replays is an error of that record only
        return None
