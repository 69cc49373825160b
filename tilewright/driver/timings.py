"""The time that each stage of a compilation takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.passes.context import PassLog


class Timings:
    """Seconds spent in each stage of a compilation, and in each graph pass."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}

    @cached_property
    def passes(self) -> PassLog:
        """What the graph passes did. Made when it is first asked for: it imports the compiler."""
        from tilewright.passes.context import PassLog

        return PassLog()

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Count the time of a block for `stage`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] = self.stages.get(stage, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """One line a stage, then one a pass."""
        lines = [f"{name:28} {seconds * 1e3:9.1f} ms" for name, seconds in self.stages.items()]
        return "\n".join([*lines, "", self.passes.table()])
