"""Traces: a schedule as a text, one step a line, that gives the same program when replayed.

    split("mm.i0", [?, 8])                       `?`: the part that is left over
    v0 = sample_tile("mm.i1", 2, 32) -> [?, 16]  a decision; `-> ?` while it is open
    split("mm.i1", v0)
    reorder("mm.i0.0", "mm.i1.0", "mm.i0.1", "mm.i1.1")

A decision can be changed without touching the steps that use it, which is what search does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tilewright.core.errors import ScheduleError
from tilewright.core.node import node
from tilewright.core.text import Cursor

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import Func


@node
class Ref:
    """A use of the decision called `name`."""

    name: str

    def __str__(self) -> str:
        return self.name


@node
class Open:
    """A decision not made yet."""

    def __str__(self) -> str:
        return "?"


OPEN = Open()
Arg: TypeAlias = "str | int | Ref | tuple[Arg, ...] | None"


@node
class Step:
    """One step: a primitive or a sampling, its arguments, and for a sampling name and decision."""

    name: str
    args: tuple[Arg, ...]
    result: str = ""
    decision: Arg | Open = OPEN

    def __str__(self) -> str:
        call = f"{self.name}({', '.join(map(print_arg, self.args))})"
        if not self.result:
            return call
        decided = "?" if self.decision is OPEN else print_arg(self.decision)
        return f"{self.result} = {call} -> {decided}"


@node
class Trace:
    """The steps of a schedule in order."""

    steps: tuple[Step, ...] = ()

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "".join(f"{step}\n" for step in self.steps)

    def replay(self, func: Func, seed: int | None = None, legality: bool = False) -> Func:
        """The program that these steps make of `func`; open decisions are drawn with `seed`."""
        from tilewright.schedule.schedule import Schedule

        sch = Schedule(func, legality=legality, seed=seed)
        for step in self.steps:
            sch.apply(step)
        return sch.func

    @property
    def decisions(self) -> dict[str, Arg | Open]:
        """The decisions by name, in order."""
        return {s.result: s.decision for s in self.steps if s.result}

    def decide(self, name: str, decision: Arg | Open) -> Trace:
        """This trace with one decision changed (`OPEN` to draw it anew)."""
        if name not in self.decisions:
            known = ", ".join(self.decisions) or "none"
            raise ScheduleError(
                "trace.decision", f"no decision named {name!r}", help=f"there is {known}"
            )
        return Trace(
            tuple(replace(s, decision=decision) if s.result == name else s for s in self.steps)
        )


def print_arg(arg: object) -> str:
    """An argument as a trace spells it."""
    if arg is None:
        return "?"
    if isinstance(arg, str):
        return json.dumps(arg)
    if isinstance(arg, tuple):
        return f"[{', '.join(map(print_arg, arg))}]"
    return str(arg)


def parse_trace(source: str, file: str = "") -> Trace:
    """The trace that `source` spells."""
    cursor = Cursor(source, file)
    steps: list[Step] = []
    while cursor.now.kind != "end":
        steps.append(_step(cursor))
        cursor.accept(";")
    return Trace(tuple(steps))


def _step(cursor: Cursor) -> Step:
    name, result = cursor.take("name"), ""
    if cursor.accept("="):
        result, name = name, cursor.take("name")
    cursor.expect("(")
    args = _args(cursor, ")")
    if not result:
        return Step(name, args)
    cursor.expect("->")
    if cursor.accept("?"):
        return Step(name, args, result)
    return Step(name, args, result, _arg(cursor))


def _args(cursor: Cursor, closing: str) -> tuple[Arg, ...]:
    found: list[Arg] = []
    while not cursor.accept(closing):
        found.append(_arg(cursor))
        if not cursor.accept(","):
            cursor.expect(closing)
            break
    return tuple(found)


def _arg(cursor: Cursor) -> Arg:
    if cursor.accept("?"):
        return None
    if cursor.accept("["):
        return _args(cursor, "]")
    if cursor.now.kind == "string":
        text: str = json.loads(cursor.take("string"))
        return text
    if cursor.now.kind == "name":
        return Ref(cursor.take("name"))
    sign = -1 if cursor.accept("-") else 1
    return sign * int(cursor.take("int"))
