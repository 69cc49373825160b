"""A log of the choices of built-in schedules: what was taken, what else there was, at what cost.

with recorded_choices() as choices:
    lower("model.onnx", options)
choices["matmul_add"][0]             # mm.mr: 14 of 1 (3.2), ..., 14 (1.0)

Nothing is listed or estimated unless somebody asks in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from tilewright.core.node import node

T = TypeVar("T")
_RECORD: ContextVar[dict[str, list[ScheduleChoice]] | None] = ContextVar("choices", default=None)


@node
class ScheduleOption:
    """What could be chosen, and the cost that the rule estimates for it, `None` if it has none."""

    value: str
    cost: float | None = None


@node
class ScheduleChoice:
    """A decision by its name, the option that was taken, and the others.

    `by_rule`: costs are those by which the rule decided, not somebody else's.
    """

    name: str
    taken: ScheduleOption
    others: tuple[ScheduleOption, ...]
    by_rule: bool = True

    @property
    def second(self) -> ScheduleOption | None:
        """The cheapest of the others, if the rule estimates what they cost."""
        known = [o for o in self.others if o.cost is not None]
        return min(known, key=lambda o: o.cost or 0.0, default=None)


@contextmanager
def recorded_choices() -> Iterator[dict[str, list[ScheduleChoice]]]:
    """The choices that are made inside, in order, by the name of the kernel."""
    found: dict[str, list[ScheduleChoice]] = {}
    token = _RECORD.set(found)
    try:
        yield found
    finally:
        _RECORD.reset(token)


def begin_kernel(name: str) -> None:
    """Tell whoever asked that the choices from here on are those of a kernel."""
    found = _RECORD.get()
    if found is not None:
        found[name] = []


def record_choice(
    name: str,
    taken: T,
    options: Callable[[], Iterable[T]],
    cost: Callable[[T], float] | None = None,
    text: Callable[[T], str] = str,
) -> None:
    """Tell whoever asked of a choice; `options` is not called if nobody did."""
    found = _RECORD.get()
    if not found:
        return

    def option(value: T) -> ScheduleOption:
        return ScheduleOption(text(value), None if cost is None else float(cost(value)))

    others = tuple(option(o) for o in options() if o != taken)
    next(reversed(found.values())).append(ScheduleChoice(name, option(taken), others))
