"""Arguments of public functions, checked at the door: each wrong one is a `ConfigError`.

    count_argument("threads", "2", 0, MAX_THREADS)

    ConfigError[argument.type]: threads is a str, '2'
      help: use an integer from 0 to 4096

Whatever passes has the type that the signature promises.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from tilewright.core.errors import ConfigError

MAX_THREADS = 4096
"""Threads that a model may run on."""
MAX_RUNS = 1_000_000
"""How often a model may be run to measure it."""


def wrong_type(name: str, value: object, wanted: str) -> ConfigError:
    """The error for an argument of a wrong type; `wanted` says what to use."""
    kind = "None" if value is None else f"a {type(value).__name__}, {_short(value)}"
    return ConfigError("argument.type", f"{name} is {kind}", help=f"use {wanted}")


def path_argument(name: str, value: object) -> Path:
    """A path: text, or an object that stands for a path."""
    if not isinstance(value, str | os.PathLike):
        raise wrong_type(name, value, "a path, as text or as a pathlib.Path")
    path = os.fspath(value)
    if isinstance(path, bytes) or "\0" in path:
        raise ConfigError("argument.value", f"{name} is no path: {_short(path)}")
    return Path(path)


def count_argument(name: str, value: object, low: int, high: int) -> int:
    """An integer within limits; those of NumPy count, truth values do not."""
    wanted = f"an integer from {low} to {high}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(name, value, wanted)
    try:
        number = operator.index(value)
    except TypeError as error:  # an array of several integers
        raise wrong_type(name, value, wanted) from error
    if not low <= number <= high:
        raise ConfigError("argument.value", f"{name} is {number}", help=f"use {wanted}")
    return number


def threads_argument(value: object) -> int | None:
    """A number of threads; `None` leaves it open, 0 means one for each processor."""
    return None if value is None else count_argument("threads", value, 0, MAX_THREADS)


def runs_argument(value: object) -> int:
    """How often something is run to measure it."""
    return count_argument("runs", value, 1, MAX_RUNS)


def flag_argument(name: str, value: object) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise wrong_type(name, value, "True or False")
    return value


def text_argument(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise wrong_type(name, value, "text")
    return value


def names_argument(name: str, value: object) -> tuple[str, ...]:
    """A collection of texts; one text alone would be taken for its letters."""
    wanted = "a list of names"
    if isinstance(value, str) or not isinstance(value, Collection):
        raise wrong_type(name, value, wanted)
    return tuple(text_argument(f"an element of {name}", item) for item in value)


def mapping_argument(name: str, value: object, wanted: str) -> Mapping[str, Any]:
    """A mapping from names."""
    if not isinstance(value, Mapping):
        raise wrong_type(name, value, wanted)
    for key in value:
        text_argument(f"a key of {name}", key)
    return value


def function_argument(name: str, value: object) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise wrong_type(name, value, "a function")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
