"""Where the time of a model goes: one row a kernel, as a table

    kernel     uses      ms  share  GFLOP/s  GB/s  roofline
    conv_relu     3  1.2341  61.2%     98.1   4.5       71%

with the time that all uses of a kernel take in one run, and "-" for what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class KernelTime:
    """How long a kernel took: `ns` nanoseconds in `calls` calls together.

    `flops` and `bytes` are those of one call, None where they depend on symbolic sizes.
    """

    name: str
    calls: int
    ns: int
    flops: float | None = None
    bytes: float | None = None

    @property
    def flops_per_second(self) -> float | None:
        """The rate of arithmetic, if known."""
        return _rate(self.flops, self.calls, self.ns)

    @property
    def bytes_per_second(self) -> float | None:
        """The rate of memory traffic, if known."""
        return _rate(self.bytes, self.calls, self.ns)


@dataclass(frozen=True)
class Roofline:
    """What the machine could do at best."""

    flops_per_second: float
    bytes_per_second: float

    def share(self, row: KernelTime) -> float | None:
        """How near a kernel comes to the nearer of the two limits; 1 is at the limit."""
        shares = [
            rate / limit
            for rate, limit in (
                (row.flops_per_second, self.flops_per_second),
                (row.bytes_per_second, self.bytes_per_second),
            )
            if rate is not None and limit > 0
        ]
        return max(shares, default=None)


@dataclass(frozen=True)
class Profile:
    """The time of each step of the model in order, over `runs` runs; `str` gives a table."""

    rows: tuple[KernelTime, ...]
    runs: int = 1
    roofline: Roofline | None = None

    @property
    def ns(self) -> int:
        """The time of all kernels together."""
        return sum(row.ns for row in self.rows)

    def by_kernel(self) -> tuple[KernelTime, ...]:
        """Steps that run the same kernel as one row, slowest first."""
        merged: dict[str, KernelTime] = {}
        for row in self.rows:
            found = merged.get(row.name)
            if found is not None:
                row = replace(row, calls=found.calls + row.calls, ns=found.ns + row.ns)
            merged[row.name] = row
        return tuple(sorted(merged.values(), key=lambda row: -row.ns))

    def __str__(self) -> str:
        total = self.ns
        slowest_first = self.by_kernel()
        lines = [_HEADER, *(self._cells(row, total) for row in slowest_first)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )

    def _cells(self, row: KernelTime, total: int) -> tuple[str, ...]:
        share = self.roofline.share(row) if self.roofline else None
        return (
            row.name,
            str(row.calls // max(self.runs, 1)),
            f"{row.ns / max(self.runs, 1) / 1e6:.4f}",
            f"{100 * row.ns / total:.1f}%" if total else "-",
            _giga(row.flops_per_second),
            _giga(row.bytes_per_second),
            "-" if share is None else f"{100 * share:.0f}%",
        )


_HEADER = ("kernel", "uses", "ms", "share", "GFLOP/s", "GB/s", "roofline")


def make_profile(manifest: Mapping[str, Any], calls: int, ns: Sequence[int]) -> Profile:
    """The profile of a model run `calls` times, from the nanoseconds its kernels took."""
    rows = tuple(
        KernelTime(kernel["name"], calls, int(time), kernel.get("flops"), kernel.get("bytes"))
        for kernel, time in zip(manifest["kernels"], ns, strict=True)
    )
    limits = manifest.get("roofline")
    return Profile(rows, calls, Roofline(**limits) if limits else None)


def _rate(amount: float | None, calls: int, ns: int) -> float | None:
    return None if amount is None or ns <= 0 else amount * calls * 1e9 / ns


def _giga(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 1e9:.1f}"
