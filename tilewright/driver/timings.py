"""The time that each stage of a compilation takes, and a limit to all of them together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from tilewright.core.config import config
from tilewright.core.errors import UnsupportedError

if TYPE_CHECKING:
    from tilewright.passes.context import PassLog


class Timings:
    """Seconds spent in each stage of a compilation, and in each graph pass.

    The compilation has `TW_COMPILE_LIMIT_S` seconds from when this is made.
    """

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._start = time.perf_counter()

    @cached_property
    def passes(self) -> PassLog:
        """What the graph passes did. Made when it is first asked for: it imports the compiler."""
        from tilewright.passes.context import PassLog

        return PassLog()

    def check_limit(self) -> None:
        """Raise UnsupportedError where the time for the compilation is over."""
        if time.perf_counter() - self._start > config().compile_limit_s:
            raise too_long()

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Count the time of a block for `stage`, which begins only while there is time."""
        self.check_limit()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] = self.stages.get(stage, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """One line a stage, then one a pass."""
        lines = [f"{name:28} {seconds * 1e3:9.1f} ms" for name, seconds in self.stages.items()]
        return "\n".join([*lines, "", self.passes.table()])


def too_long() -> UnsupportedError:
    """The error of a model that takes longer to compile than is allowed."""
    return UnsupportedError(
        "compile.time-limit",
        f"compiling takes longer than {config().compile_limit_s:g} s",
        help="set TW_COMPILE_LIMIT_S higher",
    )
