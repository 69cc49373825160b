"""What a person sees while a model is tuned: a table of its kernels that follows the search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from tilewright.driver.tuning.session import TuningSession
    from tilewright.driver.tuning.task_search import TaskSearch

# As many kernels as fit on a screen, those first that take most of the model's time.
ROWS = 20
# The gain per second is an average over so many seconds.
GAIN_WINDOW_SECONDS = 30.0

Show = Callable[["TuningSession"], object]


@contextmanager
def watching(console: Console | None = None) -> Iterator[Show]:
    """A function that shows a session on a terminal, and does nothing elsewhere."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lambda session: None
        return
    view = View()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda session: live.update(view.picture(session), refresh=True)


class View:
    """Remembers what was saved a while ago, for the gain per second."""

    def __init__(self) -> None:
        self._past: list[tuple[float, float]] = []

    def picture(self, session: TuningSession) -> Group | Text:
        """A session as it stands."""
        if not session.report.searches:
            return Text(session.doing)
        return Group(_table(session.report.searches), Text(self.line(session)))

    def line(self, session: TuningSession) -> str:
        """What is being done, for how long yet, and what it has brought."""
        before, now = _sums(session.report.searches)
        parts = [session.doing, f"{session.report.trials} measurements"]
        if now and before > now:
            parts.append(f"{before * 1e3:.3f} to {now * 1e3:.3f} ms")
        rate = self._rate(session.budget.elapsed, before - now)
        if rate > 0:
            parts.append(f"{rate * 1e6:.2f} µs gained a second")
        if math.isfinite(session.left):
            parts.append(f"{_clock(session.left)} left")
        return ", ".join(parts)

    def _rate(self, elapsed: float, saved: float) -> float:
        self._past = [(t, s) for t, s in self._past if t > elapsed - GAIN_WINDOW_SECONDS]
        self._past.append((elapsed, saved))
        start, then = self._past[0]
        return (saved - then) / (elapsed - start) if elapsed > start else 0.0


def _sums(searches: list[TaskSearch]) -> tuple[float, float]:
    """Seconds that the measured kernels take in one run: as built in, and at their best."""
    known = [s for s in searches if math.isfinite(s.builtin)]
    before = sum(s.task.about.weight * s.builtin for s in known)
    return before, sum(s.task.about.weight * min(s.best, s.builtin) for s in known)


def _table(searches: list[TaskSearch]) -> Table:
    table = Table("kernel", box=None, pad_edge=False)
    for head in ("calls", "trials", "failed", "built-in µs", "best µs", "gain"):
        table.add_column(head, justify="right")
    ordered = sorted(searches, key=_share, reverse=True)
    for search in ordered[:ROWS]:
        about = search.task.about
        counts = (f"{about.weight:.0f}", str(search.trials), str(search.failures))
        table.add_row(about.name, *counts, _us(search.builtin), _us(search.best), _gain(search))
    if len(ordered) > ROWS:
        table.add_row(f"and {len(ordered) - ROWS} more")
    return table


def _share(search: TaskSearch) -> float:
    known = search.builtin if math.isfinite(search.builtin) else 0.0
    return search.task.about.weight * known


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if math.isfinite(seconds) else ""


def _gain(search: TaskSearch) -> str:
    if search.problem:
        return "does not run"
    if not math.isfinite(search.builtin) or not search.best:
        return ""
    return f"{search.builtin / search.best:.2f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
