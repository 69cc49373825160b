"""Traces: a schedule as a text, one step a line, that gives the same program when replayed.

split("mm.i0", [?, 8])                       `?`: the factor that is left over
reorder("mm.i0.0", "mm.i1", "mm.i0.1")
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from tilewright.core.node import node
from tilewright.core.text import Cursor

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import Func


Arg: TypeAlias = "str | int | bool | tuple[Arg, ...] | None"
# The arguments that words stand for.
WORDS = {"?": None, "True": True, "False": False}


@node
class Step:
    """One step: a primitive and its arguments."""

    name: str
    args: tuple[Arg, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(print_arg, self.args))})"


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

    def replay(self, func: Func, legality: bool = False) -> Func:
        """The program that these steps make of `func`."""
        from tilewright.schedule.schedule import Schedule

        sch = Schedule(func, legality=legality)
        for step in self.steps:
            sch.apply(step)
        return sch.func


def print_arg(arg: object) -> str:
    """An argument as a trace spells it."""
    if isinstance(arg, str):
        return json.dumps(arg)
    if isinstance(arg, tuple):
        return f"[{', '.join(map(print_arg, arg))}]"
    return next((word for word, value in WORDS.items() if arg is value), str(arg))


def parse_trace(source: str, file: str = "") -> Trace:
    """The trace that `source` spells."""
    cursor = Cursor(source, file)
    steps: list[Step] = []
    while cursor.now.kind != "end":
        steps.append(_step(cursor))
        cursor.accept(";")
    return Trace(tuple(steps))


def _step(cursor: Cursor) -> Step:
    name = cursor.take("name")
    cursor.expect("(")
    return Step(name, _args(cursor, ")"))


def _args(cursor: Cursor, closing: str) -> tuple[Arg, ...]:
    found: list[Arg] = []
    while not cursor.accept(closing):
        found.append(_arg(cursor))
        if not cursor.accept(","):
            cursor.expect(closing)
            break
    return tuple(found)


def _arg(cursor: Cursor) -> Arg:
    for word, value in WORDS.items():
        if cursor.accept(word):
            return value
    if cursor.accept("["):
        return _args(cursor, "]")
    if cursor.now.kind == "string":
        text: str = json.loads(cursor.take("string"))
        return text
    sign = -1 if cursor.accept("-") else 1
    return sign * int(cursor.take("int"))
