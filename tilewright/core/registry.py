"""Things a user picks by name: a table `{name: "module:attribute"}`, imported on first use.

    STRATEGIES: Registry[type[Strategy]] = Registry(
        "strategy", {"evolutionary": "tilewright.tune.strategy.evolutionary:Evolutionary"}
    )
    STRATEGIES.get("evolutionary")

Nothing registers itself, so a name means the same thing whatever was imported before.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Generic, TypeVar, cast

from tilewright.core.errors import ConfigError

T = TypeVar("T")


class Registry(Generic[T]):
    """A table from names to things of type `T`; `kind` is what messages call one of them."""

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)

    def names(self) -> tuple[str, ...]:
        """All names, in the order of the table."""
        return tuple(self._table)

    def get(self, name: str) -> T:
        """The thing called `name`; an unknown name is an error that lists the near ones."""
        if name not in self._table:
            raise ConfigError(
                "registry.unknown", f"no {self.kind} named {name!r}", help=self._suggest(name)
            )
        module, _, attribute = self._table[name].partition(":")
        return cast(T, getattr(self._import(name, module), attribute))

    def describe(self) -> list[tuple[str, str]]:
        """`(name, first line of its docstring)` for each, or which package it lacks."""
        return [(name, self._summary(name)) for name in self._table]

    def _summary(self, name: str) -> str:
        try:
            thing = self.get(name)
        except ConfigError as error:  # a listing must not stop at an optional package
            return f"({error.message})"
        return (inspect.getdoc(thing) or "").partition("\n")[0]

    def _suggest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._table, n=3)
        if near:
            return f"did you mean {' or '.join(map(repr, near))}?"
        return f"known: {', '.join(self._table) or 'none'}"

    def _import(self, name: str, module: str) -> ModuleType:
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing == module.partition(".")[0]:
                raise  # the table itself is wrong: our own mistake
            raise ConfigError(
                "registry.missing-package",
                f"{self.kind} {name!r} needs the package {missing!r}, which is not installed",
                help=f"pip install {missing}",
            ) from error
