"""A function being scheduled: every step gives a new function and a line of the trace.

    sch = Schedule(func)
    i0, i1 = sch.split("mm.i0", [None, 8])
    sch.vectorize(i1)
    sch.func, sch.trace

The methods of `methods.py` are the primitives of `primitives/table.py`, by name.

A built-in schedule asks `choose` for each decision: it gives a default and the other options. A
search answers through `decide`. The trace holds the steps that follow, not the decisions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar

from tilewright.core.config import config
from tilewright.core.errors import Error, ScheduleError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verified import VerifiedStmts
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.choice_log import record_choice
from tilewright.schedule.methods import PrimitiveMethods
from tilewright.schedule.primitives.table import PRIMITIVES, names_of, rewrite_of
from tilewright.schedule.trace import Step, Trace

T = TypeVar("T")
# Answers a question: its name, what is taken by default, and all that may be.
Decide: TypeAlias = Callable[[str, Any, tuple[Any, ...]], Any]
# Steps of searched schedules that are remembered, some ten thousand bytes each.
REMEMBERED_STEPS = 8192


@node
class _StepNote:
    """The position of a step in its trace, rendered only when an error is printed."""

    step: Step
    number: int

    def __str__(self) -> str:
        return f"in {self.step}, trace step {self.number}"


class Schedule(PrimitiveMethods):
    """Applies steps to `func`; with `legality`, each that moves code is checked with isl.

    `decide` answers every `choose`; without it each decision takes its default.
    """

    def __init__(
        self,
        func: Func,
        *,
        legality: bool = False,
        decide: Decide | None = None,
    ) -> None:
        self.func = func
        self.legality = legality
        self._decide = decide
        self._steps: list[Step] = []
        self._verified = VerifiedStmts()

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return Trace(tuple(self._steps))

    def choose(
        self,
        name: str,
        default: T,
        options: Callable[[], Iterable[T]],
        cost: Callable[[T], float] | None = None,
    ) -> T:
        """The decision called `name`: one of `options` if there is a `decide`, else the default.

        The default is always among the options offered. `options` is only called by a search, or
        for a report (`choice_log.py`), which also shows the estimated `cost` of each.
        """
        if self._decide is None:
            record_choice(name, default, options, cost)
            return default
        listed = tuple(options())
        choice: T = self._decide(name, default, listed if default in listed else (default, *listed))
        return choice

    def apply(self, step: Step) -> Any:
        """Run one step and record it; the result is the names of what it makes."""
        try:
            _check_call(step)
            # Candidates of a search mostly begin with the same steps.
            run = _applied if self._decide is None else _remembered
            result, after = run(_Same(self.func), step.name, step.args)
            self._change(step, after)
        except Error as error:
            error.notes = (_StepNote(step, len(self._steps) + 1), *error.notes)
            raise
        self._steps.append(step)
        return result

    def _change(self, step: Step, after: Func) -> None:
        if config().verify == 2:
            verify_func(after, self._verified)
        if self.legality and PRIMITIVES[step.name].moves:
            # Imported here because isl takes long to load and compiling does not need it.
            from tilewright.schedule.legality.dependences import check

            check(self.func, after)
        self.func = after


class _Same:
    """A function as a cache key, compared by identity."""

    __slots__ = ("func",)

    def __init__(self, func: Func) -> None:
        self.func = func

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.func is other.func

    def __hash__(self) -> int:
        return id(self.func)


def _applied(before: _Same, name: str, args: tuple[Any, ...]) -> tuple[Any, Func]:
    """What a primitive gives, and the function that it makes."""
    names = names_of(name)
    result = names(before.func, *args) if names is not None else None
    return result, rewrite_of(name)(before.func, *args)


_remembered = lru_cache(REMEMBERED_STEPS)(_applied)


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(rewrite_of(name))


def _check_call(step: Step) -> None:
    if step.name not in PRIMITIVES:
        raise ScheduleError(
            "trace.step",
            f"no primitive named {step.name!r}",
            help=f"there is {', '.join(PRIMITIVES)}",
        )
    try:
        _signature(step.name).bind(None, *step.args)
    except TypeError as error:
        raise ScheduleError(
            "trace.arguments",
            f"{step.name} does not take these arguments: {error}",
            help=f"{step.name}{_signature(step.name)}",
        ) from None
