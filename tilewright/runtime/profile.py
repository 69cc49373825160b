"""Where the time of a model goes: one row a kernel, as a table

    kernel     calls  min ms  median  share  GFLOP/s  GB/s  of roof  bound by
    conv_relu      3  1.2341  1.2402  61.2%     98.1   4.5      71%  compute

    all kernels 2.014 ms, outside of them 0.006 ms, whole runs without clocks 2.021 ms

The times are those of all calls of a kernel in one run, less the cost of reading the clock. Whole
runs are made without clocks, alternating with the timed ones. The time outside of kernels is the
least difference between a run and its kernels: calling the model, and host code between kernels.
The share of the roof is the least time that the kernel could take (see `roofline/roofline.py`) over
the time that it took. "-" is not known.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.runtime.roofline.roofline import Bound, KernelWork, Roofline
from tilewright.runtime.size_expr import evaluate_text


@dataclass(frozen=True)
class KernelTime:
    """One step of the model, or all steps of a kernel together: nanoseconds in each run."""

    name: str
    calls: int
    ns: tuple[float, ...]
    work: KernelWork | None = None
    bound: Bound | None = None

    @property
    def least(self) -> float:
        """Nanoseconds of the fastest run."""
        return min(self.ns)

    @property
    def median(self) -> float:
        """Nanoseconds of the run in the middle."""
        return statistics.median(self.ns)

    @property
    def flops_per_second(self) -> float | None:
        """The rate of arithmetic, if known."""
        return self._rate(None if self.work is None else self.work.flops)

    @property
    def bytes_per_second(self) -> float | None:
        """The rate of memory traffic, if known."""
        return self._rate(None if self.work is None else self.work.bytes)

    @property
    def of_roof(self) -> float | None:
        """The least possible time of the time it took: 1 is at the roof."""
        return None if self.bound is None else self._rate(self.bound.seconds)

    def _rate(self, amount: float | None) -> float | None:
        return None if amount is None or self.least <= 0 else amount * 1e9 / self.least


@dataclass(frozen=True)
class Profile:
    """The time of each step of the model in order, in each run; `str` gives a table.

    `wholes` are the nanoseconds of runs without clocks, `outside_ns` those that a run takes beside
    its kernels. `schedules` says of each kernel how it was
    made, `places` of each step which nodes of the model it computes.
    """

    rows: tuple[KernelTime, ...]
    wholes: tuple[int, ...] = ()
    outside_ns: float = 0.0
    roofline: Roofline | None = None
    schedules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: tuple[Mapping[str, Any], ...] = ()

    @property
    def kernels_ns(self) -> float:
        """All kernels in one run, each at its fastest."""
        return sum(row.least for row in self.by_kernel())

    @property
    def whole_ns(self) -> int:
        """The fastest run without clocks."""
        return min(self.wholes, default=0)

    def by_kernel(self) -> tuple[KernelTime, ...]:
        """Steps that run the same kernel as one row, slowest first."""
        steps: dict[str, list[KernelTime]] = {}
        for row in self.rows:
            steps.setdefault(row.name, []).append(row)
        return tuple(sorted(map(_together, steps.values()), key=lambda row: -row.least))

    def data(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "whole_ms": self.whole_ns / 1e6,
            "kernels_ms": self.kernels_ns / 1e6,
            "outside_ms": self.outside_ns / 1e6,
            "kernels": [self._data(row) for row in self.by_kernel()],
            "roofline": None if self.roofline is None else self.roofline.data(),
        }

    def _data(self, row: KernelTime) -> dict[str, Any]:
        return {
            "name": row.name,
            "calls": row.calls,
            "min_ms": row.least / 1e6,
            "median_ms": row.median / 1e6,
            "flops": None if row.work is None else row.work.flops,
            "bytes": None if row.work is None else row.work.bytes,
            "of_roof": row.of_roof,
            "bound": None if row.bound is None else row.bound.by,
            **self.schedules.get(row.name, {}),
            "places": [place for place in self.places if place["kernel"] == row.name],
        }

    def __str__(self) -> str:
        total, rows = self.kernels_ns, self.by_kernel()
        unit = _unit(rows)
        header = tuple(cell.format(unit) for cell in _HEADER)
        lines = [header, *(_cells(row, total, UNITS[unit]) for row in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        table = [
            "  ".join(
                cell.ljust(width) if column in _LEFT else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*table, *self._summary()])

    def _summary(self) -> list[str]:
        if not self.wholes:
            return []
        return [
            "",
            f"all kernels {self.kernels_ns / 1e6:.4g} ms, outside of them "
            f"{self.outside_ns / 1e6:.4g} ms, whole runs without clocks "
            f"{self.whole_ns / 1e6:.4g} ms",
        ]


_HEADER = (
    *("kernel", "calls", "min ms", "median", "share"),
    *("{}FLOP/s", "{}B/s", "of roof", "bound by"),
)
_LEFT = (0, len(_HEADER) - 1)
TERA = 1e12
# The units of rates.
UNITS = {"G": 1e9, "T": TERA}


def _unit(rows: Sequence[KernelTime]) -> str:
    """Tera on a machine whose memory gives that much."""
    return "T" if any((row.bytes_per_second or 0.0) >= TERA for row in rows) else "G"


def _cells(row: KernelTime, total: float, unit: float) -> tuple[str, ...]:
    return (
        row.name,
        str(row.calls),
        f"{row.least / 1e6:.4g}",
        f"{row.median / 1e6:.4g}",
        f"{100 * row.least / total:.1f}%" if total else "-",
        _rate(row.flops_per_second, unit),
        _rate(row.bytes_per_second, unit),
        "-" if row.of_roof is None else f"{100 * row.of_roof:.0f}%",
        "-" if row.bound is None else row.bound.by,
    )


@dataclass(frozen=True)
class Measured:
    """Nanoseconds: of every step in each run, of these runs as a whole, of runs without clocks."""

    steps: Sequence[Sequence[float]]
    runs: Sequence[int] = ()
    wholes: Sequence[int] = ()

    @property
    def outside(self) -> float:
        """The least time that a run took outside of its kernels."""
        pairs = zip(self.runs, self.steps, strict=True)
        return max(0.0, min((run - sum(steps) for run, steps in pairs), default=0.0))


def make_profile(
    manifest: Mapping[str, Any],
    sizes: Mapping[str, int],
    measured: Measured,
    footprint: float = 0.0,
    roofline: Roofline | None = None,
) -> Profile:
    """The profile of a model from what was measured at given sizes."""
    clock = 0.0 if roofline is None else roofline.clock_ns
    rows = []
    for step, *ns in zip(manifest["kernels"], *measured.steps, strict=True):
        work = step_work(step, sizes)
        bound = None if work is None or roofline is None else roofline.bound(work, footprint)
        kept = tuple(max(0.0, one - clock) for one in ns)
        rows.append(KernelTime(step["name"], 1, kept, work, bound))
    places = tuple(
        {
            "kernel": step["name"],
            "nodes": step.get("nodes", []),
            "unfused_reason": step.get("unfused_reason", []),
        }
        for step in manifest["kernels"]
    )
    wholes, schedules = tuple(measured.wholes), manifest.get("schedules", {})
    return Profile(tuple(rows), wholes, measured.outside, roofline, schedules, places)


def step_work(step: Mapping[str, Any], sizes: Mapping[str, int]) -> KernelWork | None:
    """What a step of the manifest does at these sizes, if known."""
    amounts = [_amount(step.get(key), sizes) for key in ("flops", "bytes", "weights")]
    flops, moved, weights = amounts
    if flops is None or moved is None:
        return None
    return KernelWork(flops, moved, weights or 0.0, step.get("element", "f32"))


def _amount(value: float | str | None, sizes: Mapping[str, int]) -> float | None:
    return evaluate_text(value, sizes) if isinstance(value, str) else value


def _together(steps: Sequence[KernelTime]) -> KernelTime:
    """The steps of one kernel as one row."""
    first = steps[0]
    works = [step.work for step in steps if step.work is not None]
    bounds = [step.bound for step in steps if step.bound is not None]
    work = bound = None
    if len(works) == len(steps):
        work = KernelWork(
            sum(one.flops for one in works),
            sum(one.bytes for one in works),
            sum(one.weights for one in works),
            works[0].element,
        )
    if len(bounds) == len(steps):
        longest = max(bounds, key=lambda one: one.seconds)
        bound = Bound(sum(one.seconds for one in bounds), longest.by)
    ns = tuple(map(sum, zip(*(step.ns for step in steps), strict=True)))
    return KernelTime(first.name, len(steps), ns, work, bound)


def _rate(rate: float | None, unit: float) -> str:
    if rate is None:
        return "-"
    return f"{rate / unit:.2f}" if unit == TERA else f"{rate / unit:.1f}"
