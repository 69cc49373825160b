"""A scheduled function as one row of numbers, as long for every function.

The row has columns of the whole function, of its two heaviest statements (by the estimate), and of
all statements together: for sizes the logarithm of the sum, for others the largest. Nothing in it
depends on names, so what is learnt from one task means something for others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from tilewright.ir.loop.nodes import Buffer, Func
from tilewright.ir.loop.walk import buffers
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.registry import CPUS
from tilewright.target.target import Target
from tilewright.tune.features.accesses import Statement, statements_of
from tilewright.tune.features.columns import log, statement_columns
from tilewright.tune.features.gpu_program import gpu_feature_names, gpu_program_features
from tilewright.tune.features.index_footprint import footprint
from tilewright.tune.features.op_counts import KINDS
from tilewright.tune.features.performance_model import estimate, estimate_all

# Statements that have columns of their own.
DETAILED_STATEMENTS = 2
# The estimated time of the whole function, for models that need no data.
ESTIMATE = "program.cycles"


def features_for(func: Func, target: Target) -> np.ndarray:
    """The row of a function that is scheduled for a machine, the estimate first."""
    if isinstance(target, GpuTarget):
        return gpu_program_features(func, target)
    return program_features(func, target)


def fewest_columns() -> int:
    """The columns that a row has at least, for whichever machine it is."""
    return min(len(feature_names()), len(gpu_feature_names()))


def program_features(func: Func, target: CpuTarget) -> np.ndarray:
    """The row of a function scheduled for a processor."""
    known = buffers(func)
    found = statements_of(func, known)
    costs, cycles = estimate_all(found, target)
    rows = [
        np.array([number for _, number in statement_columns(s, cost, target)])
        for s, cost in zip(found, costs, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda n: -costs[n].total)
    heaviest = [rows[n] for n in order[:DETAILED_STATEMENTS]]
    empty = [np.zeros(len(_statement_names()))] * (DETAILED_STATEMENTS - len(heaviest))
    ideal = sum(cost.arithmetic for cost in costs) / target.cores
    own = [*known.values()][len(func.params) :]
    whole = np.array([log(cycles), ideal / max(1.0, cycles), *_whole(own, found)])
    return np.concatenate([whole, *heaviest, *empty, _pooled(rows)])


@cache
def feature_names() -> tuple[str, ...]:
    """The columns by name."""
    names = _statement_names()
    return (
        *_WHOLE,
        *(f"s{place}.{name}" for place in range(DETAILED_STATEMENTS) for name in names),
        *(f"all.{name}" for name in names),
    )


_WHOLE = (
    ESTIMATE,
    "program.efficiency",
    "program.statements",
    "program.flops",
    "program.allocated",
    "program.on the stack",
    "program.in registers",
)
# Where allocations of a processor are, in the order of their columns.
_PLACES = ("global", "local", "register")


def _whole(own: Sequence[Buffer], found: Sequence[Statement]) -> list[float]:
    allocated = dict.fromkeys(_PLACES, 0)
    for buffer in own:
        size = math.prod(max(1, footprint(d, {}, {}).base) for d in buffer.shape)
        place = "local" if buffer.scope == "volatile" else buffer.scope
        allocated[place] += size * buffer.dtype.bytes
    flops = sum(s.flops * s.runs for s in found)
    return [float(len(found)), log(flops), *map(log, allocated.values())]


def _pooled(rows: Sequence[np.ndarray]) -> np.ndarray:
    if not rows:
        return np.zeros(len(_statement_names()))
    stacked = np.vstack(rows)
    sums: np.ndarray = np.log2(1 + (2**stacked - 1).sum(axis=0))
    return np.where(_summed(), sums, stacked.max(axis=0))


@cache
def _summed() -> np.ndarray:
    """Which columns are sizes of the whole run, so that those of statements add up."""
    extensive = ("cycles", "ops.", "runs")
    return np.array([name.startswith(extensive) for name in _statement_names()])


@cache
def _statement_names() -> tuple[str, ...]:
    some = Statement((), (), dict.fromkeys(KINDS, 0), (), 32, False, False, False)
    target = CPUS["aarch64"]
    return tuple(name for name, _ in statement_columns(some, estimate(some, target), target))
