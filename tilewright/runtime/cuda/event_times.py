"""Times of a context's runs on the clock of the GPU: of each step, and of whole runs."""

from __future__ import annotations

import math
import time
from itertools import pairwise

from tilewright.runtime.cuda.execution_context import CudaExecutionContext

MAX_AHEAD = 16
"""The most graph launches that keep the GPU busy while the host launches step by step."""


def graph_time(context: CudaExecutionContext) -> float:
    """Milliseconds of one run as a whole."""
    driver = context.driver
    start, end = driver.create_event(), driver.create_event()
    driver.record(start, context.stream)
    context.compute()
    driver.record(end, context.stream)
    elapsed = driver.elapsed(start, end)
    driver.destroy_event(start)
    driver.destroy_event(end)
    return elapsed


def launches_ahead(context: CudaExecutionContext, steps: int) -> int:
    """How many graph launches take the GPU as long as launching steps takes the host."""
    start = time.perf_counter()
    step_times(context, steps, 0)
    seconds = time.perf_counter() - start
    return min(MAX_AHEAD, math.ceil(seconds * 1e3 / max(graph_time(context), 1e-3)))


def step_times(context: CudaExecutionContext, steps: int, ahead: int) -> list[int]:
    """Nanoseconds of each step of one run: all times it was done, none if it was left out.

    So many whole runs come before, so that the GPU never waits for a launch.
    """
    driver = context.driver
    for _ in range(ahead):
        context.compute()
    events = [driver.create_event()]
    driver.record(events[0], context.stream)

    done: list[int] = []

    def note(step: int) -> None:
        done.append(step)
        events.append(driver.create_event())
        driver.record(events[-1], context.stream)

    context.launch_all(note)
    driver.synchronize(context.stream)
    times = [0] * steps
    for step, (a, b) in zip(done, pairwise(events), strict=True):
        times[step] += int(driver.elapsed(a, b) * 1e6)
    for event in events:
        driver.destroy_event(event)
    return times
