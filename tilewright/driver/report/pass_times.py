"""What a model's passes are worth: its measured time without each of them.

Both models are loaded at once and run interleaved, so that other load on the machine affects both.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from tilewright.driver.compile import compile_model
from tilewright.driver.options import CompileOptions

# Seconds that two models run interleaved, and the fewest runs of each.
SECONDS, MIN_RUNS = 1.0, 5

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PassTime:
    """The median time of a run with all passes, and without one."""

    name: str
    enabled_s: float
    disabled_s: float


def pass_times(
    source: Any, names: Iterable[str], inputs: Arrays, options: CompileOptions
) -> Iterator[PassTime]:
    """The time of a model without each of the passes."""
    with compile_model(source, options) as whole:
        for name in names:
            disabled = (*options.disable_passes, name)
            with compile_model(source, replace(options, disable_passes=disabled)) as less:
                yield PassTime(name, *_in_turns(whole, less, inputs))


def _in_turns(first: Any, second: Any, inputs: Arrays) -> tuple[float, float]:
    """The median times of two models that take turns, the first runs not counted."""
    first.run(inputs)
    second.run(inputs)
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times[0]) < MIN_RUNS:
        for model, found in zip((first, second), times, strict=True):
            start = time.perf_counter()
            model.run(inputs)
            found.append(time.perf_counter() - start)
    return median(times[0]), median(times[1])
