"""A function being scheduled: every step gives a new function and a line of the trace.

    sch = Schedule(func)
    i0, i1 = sch.split("mm.i0", [None, 8])
    sch.vectorize(i1)
    sch.func, sch.trace

Methods are the primitives of `primitives/table.py` and the samplings of `sample.py`, by name.

Code that makes schedules *chooses*: it has a default for every decision, and says what else it
could take. A search decides otherwise; the trace then holds the steps that follow, not the choices.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from typing import Any, TypeAlias, TypeVar

from tilewright.core.config import config
from tilewright.core.errors import Error, ScheduleError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.primitives.table import PRIMITIVES, names_of, rewrite_of
from tilewright.schedule.sample import SAMPLINGS
from tilewright.schedule.trace import Arg, Open, Ref, Step, Trace

T = TypeVar("T")
# Answers a question: its name, what is taken by default, and all that may be.
Decide: TypeAlias = Callable[[str, Any, tuple[Any, ...]], Any]
# Steps of searched schedules that are remembered, some ten thousand bytes each.
REMEMBERED = 8192


@node
class Sampled:
    """A sampled value with its name: given to a step whole, the trace records the name."""

    name: str
    value: Arg


@node
class _StepNote:
    """Where a step stands in its trace, rendered only when an error is printed."""

    step: Step
    number: int

    def __str__(self) -> str:
        return f"in {self.step}, trace step {self.number}"


class Schedule:
    """Applies steps to `func`; with `legality`, each that moves code is checked with isl.

    Who makes the schedule takes its own defaults, unless there is a `decide` to ask.
    """

    def __init__(
        self,
        func: Func,
        *,
        legality: bool = False,
        seed: int | None = None,
        decide: Decide | None = None,
    ) -> None:
        self.func = func
        self.legality = legality
        self._decide = decide
        self._steps: list[Step] = []
        self._values: dict[str, Arg] = {}
        self._rng = random.Random(config().seed if seed is None else seed)

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return Trace(tuple(self._steps))

    def choose(self, name: str, default: T, options: Callable[[], Iterable[T]]) -> T:
        """One of `options`, which are only listed if somebody decides; else the default.

        A default that is no option is one nevertheless.
        """
        if self._decide is None:
            return default
        listed = tuple(options())
        choice: T = self._decide(name, default, listed if default in listed else (default, *listed))
        return choice

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The primitive or sampling called `name`, to be applied to this schedule."""
        if name in PRIMITIVES or name in SAMPLINGS:
            return partial(self._call, name)
        raise AttributeError(f"no primitive named {name!r}; there is {', '.join(PRIMITIVES)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *PRIMITIVES, *SAMPLINGS]

    def _call(self, name: str, *args: Any, **named: Any) -> Any:
        if named:
            leading = _leading(name)
            args = _signature(name).bind(*leading, *args, **named).args[len(leading) :]
        result = f"v{len(self._values)}" if name in SAMPLINGS else ""
        return self.apply(Step(name, tuple(map(_recorded, args)), result))

    def apply(self, step: Step) -> Any:
        """Run one step and record it; what it gives names what it made."""
        try:
            args = tuple(map(self._resolved, step.args))
            self._check_call(step, args)
            if step.name in SAMPLINGS:
                return self._sample(step, args)
            # Candidates of a search mostly begin alike.
            run = _applied if self._decide is None else _remembered
            result, after = run(_Same(self.func), step.name, args)
            self._change(step, after)
        except Error as error:
            error.notes = (_StepNote(step, len(self._steps) + 1), *error.notes)
            raise
        self._steps.append(step)
        return result

    def _change(self, step: Step, after: Func) -> None:
        if config().verify == 2:
            verify_func(after)
        if self.legality and PRIMITIVES[step.name].moves:
            # Imported here because isl takes long to load and compiling does not need it.
            from tilewright.schedule.legality.dependences import check

            check(self.func, after)
        self.func = after

    def _sample(self, step: Step, args: tuple[Any, ...]) -> Sampled:
        decided = step.decision
        if isinstance(decided, Open):
            decided = SAMPLINGS[step.name](self.func, self._rng, *args)
        decision: Arg = decided
        self._values[step.result] = decision
        self._steps.append(Step(step.name, step.args, step.result, decision))
        return Sampled(step.result, decision)

    def _resolved(self, arg: Arg) -> Any:
        if isinstance(arg, Ref):
            if arg.name not in self._values:
                known = ", ".join(self._values) or "none"
                raise ScheduleError(
                    "trace.decision", f"no decision named {arg.name!r}", help=f"there is {known}"
                )
            return self._values[arg.name]
        return tuple(map(self._resolved, arg)) if isinstance(arg, tuple) else arg

    def _check_call(self, step: Step, args: tuple[Any, ...]) -> None:
        if step.name not in PRIMITIVES and step.name not in SAMPLINGS:
            raise ScheduleError(
                "trace.step",
                f"no primitive named {step.name!r}",
                help=f"there is {', '.join((*PRIMITIVES, *SAMPLINGS))}",
            )
        try:
            _signature(step.name).bind(*_leading(step.name), *args)
        except TypeError as error:
            raise ScheduleError(
                "trace.arguments",
                f"{step.name} does not take these arguments: {error}",
                help=f"{step.name}{_signature(step.name)}",
            ) from None


class _Same:
    """A function as the key of what is known of it: equal to itself only, which is told at once."""

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


_remembered = lru_cache(REMEMBERED)(_applied)


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(SAMPLINGS[name] if name in SAMPLINGS else rewrite_of(name))


def _leading(name: str) -> tuple[None, ...]:
    """Places of the arguments that the schedule gives: the function, for samplings an RNG too."""
    return (None, None) if name in SAMPLINGS else (None,)


def _recorded(value: Any) -> Arg:
    """An argument as the trace keeps it."""
    if isinstance(value, Sampled):
        return Ref(value.name)
    if isinstance(value, list | tuple):
        return tuple(map(_recorded, value))
    assert value is None or isinstance(value, str | int | Ref), f"no trace can hold {value!r}"
    return value
