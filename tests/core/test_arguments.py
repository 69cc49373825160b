"""Each wrong argument is a `ConfigError` that names it and says what to use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.arguments import (
    count_argument,
    flag_argument,
    function_argument,
    mapping_argument,
    names_argument,
    path_argument,
    runs_argument,
    text_argument,
    threads_argument,
)
from tilewright.core.errors import ConfigError


def threads(value: object) -> int | None:
    return threads_argument(value)


def test_what_is_right_passes() -> None:
    assert path_argument("path", "a/b") == Path("a/b")
    assert path_argument("path", Path("a")) == Path("a")
    assert count_argument("n", np.int32(3), 0, 5) == 3
    assert threads_argument(None) is None
    assert threads_argument(0) == 0
    assert runs_argument(1) == 1
    assert flag_argument("cache", False) is False
    assert names_argument("passes", {"fuse": 1}) == ("fuse",)
    assert mapping_argument("dims", {"N": 1}, "sizes") == {"N": 1}
    assert function_argument("progress", print) is print


@for_each(
    ("check", "value", "message"),
    [
        (lambda v: path_argument("path", v), None, "path is None"),
        (lambda v: path_argument("path", v), b"x", "path is a bytes, b'x'"),
        (lambda v: path_argument("path", v), {}, "path is a dict"),
        (lambda v: path_argument("path", v), "a\0b", "path is no path"),
        (threads, "2", "threads is a str, '2'"),
        (threads, 1.5, "threads is a float"),
        (threads, True, "threads is a bool"),
        (threads, -1, "threads is -1"),
        (threads, 100_000, "threads is 100000"),
        (threads, 10**30, "threads is 1000"),
        (threads, np.zeros(2, int), "threads is a ndarray"),
        (runs_argument, 0, "runs is 0"),
        (lambda v: flag_argument("cache", v), "no", "cache is a str"),
        (lambda v: text_argument("target", v), None, "target is None"),
        (lambda v: names_argument("disable_passes", v), "fuse", "disable_passes is a str"),
        (lambda v: names_argument("disable_passes", v), [5], "an element of disable_passes is"),
        (lambda v: mapping_argument("dims", v, "sizes"), [("N", 1)], "dims is a list"),
        (lambda v: mapping_argument("dims", v, "sizes"), {5: 1}, "a key of dims is a int, 5"),
        (lambda v: function_argument("progress", v), 5, "progress is a int, 5"),
    ],
)
def test_what_is_wrong_is_named(
    check: Callable[[object], object], value: object, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check(value)
    assert caught.value.code in ("argument.type", "argument.value")
    assert message in caught.value.message


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        path_argument("path", list(range(1000)))
    assert len(caught.value.message) < 120
