"""The roofline of a machine: operations a second by type, bytes a second by cache level.

The bound of a kernel is the time its operations take at the arithmetic roof or its bytes at the
roof of the cache they come from, whichever is longer. What a kernel exchanges with its neighbours
is in the smallest cache it fits into; the model's weights were last touched a whole run ago, so
they come from the smallest cache that the whole model fits into.

    roofline.bound(KernelWork(flops=2e9, bytes=6e6, weights=4e6), footprint=1e8)

`machine_roofline.py` has that of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any

COMPUTE = "compute"


@dataclass(frozen=True)
class KernelWork:
    """What one call of a kernel does: operations, bytes moved, how many of those are weights."""

    flops: float
    bytes: float
    weights: float = 0.0
    element: str = "f32"


@dataclass(frozen=True)
class Level:
    """A cache or the memory: what it holds for all threads together, and how fast it is read."""

    name: str
    bytes: float
    bytes_per_second: float


@dataclass(frozen=True)
class Bound:
    """The least time that a kernel can take, and what that is due to: `compute` or a level."""

    seconds: float
    by: str


@dataclass(frozen=True)
class Roofline:
    """The arithmetic and bandwidth roofs for a number of threads, and the cost of the clock."""

    threads: int
    flops_per_second: Mapping[str, float]
    levels: tuple[Level, ...]
    clock_ns: float = 0.0

    def level(self, size: float) -> Level:
        """The smallest level that holds `size` bytes."""
        return next((one for one in self.levels if size <= one.bytes), self.levels[-1])

    def bound(self, work: KernelWork, footprint: float) -> Bound:
        """The least time of a kernel in a model whose weights and arena take `footprint` bytes."""
        rate = self.flops_per_second.get(work.element, self.flops_per_second["f32"])
        compute = work.flops / rate
        near, far = self.level(work.bytes), self.level(max(footprint, work.bytes))
        exchanged = (work.bytes - work.weights) / near.bytes_per_second
        fetched = work.weights / far.bytes_per_second
        if compute >= exchanged + fetched:
            return Bound(compute, COMPUTE)
        return Bound(exchanged + fetched, (far if fetched > exchanged else near).name)

    def data(self) -> dict[str, Any]:
        """The same as plain data; JSON has no infinite numbers, so the memory's size is `None`."""
        levels = [
            {**asdict(one), "bytes": one.bytes if isfinite(one.bytes) else None}
            for one in self.levels
        ]
        return {**asdict(self), "levels": levels}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Roofline:
        """What `data` gave."""
        levels = tuple(
            Level(**{**one, "bytes": inf if one["bytes"] is None else one["bytes"]})
            for one in data["levels"]
        )
        return Roofline(data["threads"], data["flops_per_second"], levels, data["clock_ns"])

    def better(self, other: Roofline | None) -> Roofline:
        """The higher of each roof: a roof measured too low met another process."""
        if other is None:
            return self
        rates = {
            element: max(rate, other.flops_per_second.get(element, 0.0))
            for element, rate in self.flops_per_second.items()
        }
        levels = tuple(
            Level(a.name, a.bytes, max(a.bytes_per_second, b.bytes_per_second))
            for a, b in zip(self.levels, other.levels, strict=True)
        )
        return Roofline(self.threads, rates, levels, min(self.clock_ns, other.clock_ns))
