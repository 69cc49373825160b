"""`tilewright doctor --calibrate`: measure this machine and keep what cost models read of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError
from tilewright.core.host.core_rates import CoreRates
from tilewright.core.host.machine_load import IDLE, others_seconds
from tilewright.driver.compile import compile
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.roofline.core_rates import measure_core
from tilewright.target.calibration.store import remove_calibration, write_calibration
from tilewright.target.host import host, usable_cores

# Elements of a parallel loop: several times the least that is parallel, and small enough for L2.
ELEMENTS = 1 << 17
CALLS = 200


def calibrate(force: bool = False, others: Callable[[], float] = others_seconds) -> CoreRates:
    """Measure this machine; from now on `native` has these rates.

    Other processes make a machine look slower than it is. If they have used more of it than a
    little meanwhile, by the seconds that `others` counts, nothing is kept unless `force` says so.
    """
    before, start = others(), time.perf_counter()
    rates = measure_core(fork_seconds())
    share = (others() - before) / (time.perf_counter() - start)
    if share > IDLE and not force:
        raise ConfigError(
            "calibration.busy",
            f"other processes used {share:.2f} cores while the machine was measured, so that "
            "nothing is kept",
            help="measure again when the machine is idle, or keep what is found with --force",
        )
    write_calibration(rates)
    host.cache_clear()
    return rates


def reset_calibration() -> bool:
    """Go back to the built-in figures; whether there was a calibration."""
    removed = remove_calibration()
    host.cache_clear()
    return removed


def fork_seconds(clock: Callable[[], float] = time.perf_counter) -> float:
    """What starting a parallel loop on all cores, and waiting for the last of them, takes.

    On one thread the loop takes its call and its work; on all of them its call, the fork and join,
    and its share of the work. A loop of one element takes the call alone. Without a second core
    nothing is ever forked.
    """
    threads = usable_cores()
    if threads == 1:
        return 0.0
    with _relu(1) as small, _relu(ELEMENTS) as large:
        call = _best(small, 1, clock)
        large.set_threads(1)
        alone = _best(large, ELEMENTS, clock)
        large.set_threads(threads)
        together = _best(large, ELEMENTS, clock)
    return max(0.0, together - call - (alone - call) / threads)


def _relu(size: int) -> Executable:
    g = GraphBuilder("fork")
    model = compile(g.graph(g.add("relu", g.input("x", tensor(F32, size)))), cache=False)
    assert isinstance(model, Executable)
    return model


def _best(model: Executable, size: int, clock: Callable[[], float]) -> float:
    """The least seconds of a call."""
    x, seconds = np.ones(size, np.float32), []
    for _ in range(CALLS):
        start = clock()
        model(x)
        seconds.append(clock() - start)
    return min(seconds)
