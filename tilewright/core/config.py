"""The one table of switches. Nothing else in the package reads the environment.

    TW_VERIFY=2 python train.py        for a process
    with override(verify=2): ...       for a block of code

`SWITCHES` is the table, from which the documentation is made too; `Config` holds its typed values.
Both ways in go through the same checks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.core.errors import ConfigError


class SwitchKind(NamedTuple):
    """What values a switch takes: in words, and as a reader of its text or of a ready value."""

    words: str
    read: Callable[[Any], object]


class Switch(NamedTuple):
    """One row of the table; `default` is text, read like the variable would be."""

    name: str
    kind: SwitchKind
    default: str
    meaning: str

    @property
    def field(self) -> str:
        """Its name in `Config` and `override`."""
        return self.name.removeprefix("TW_").lower()

    @property
    def type(self) -> str:
        """The values it takes, in words."""
        return self.kind.words


def _choice(*options: str) -> SwitchKind:
    def read(value: Any) -> object:
        if value not in options:
            raise ValueError(value)
        return value

    return SwitchKind(" | ".join(option or "(empty)" for option in options), read)


def _flag(off: str, on: str) -> SwitchKind:
    values = {off: False, on: True, False: False, True: True}
    return SwitchKind(f"{off} | {on}", lambda value: values[value])


def _number(convert: type[int] | type[float], words: str, low: int, high: float) -> SwitchKind:
    def read(value: Any) -> object:
        number = convert(value)
        if not low <= number <= high or (not isinstance(value, str) and number != value):
            raise ValueError(value)
        return number

    return SwitchKind(words, read)


def _optional(kind: SwitchKind) -> SwitchKind:
    return SwitchKind(
        f"{kind.words} | (empty)",
        lambda value: None if value is None or value == "" else kind.read(value),
    )


def _read_names(value: Any) -> object:
    names = value.split(",") if isinstance(value, str) else value
    return tuple(name.strip() for name in names if name.strip())


_DIRECTORY = SwitchKind("directory", lambda value: Path(value).expanduser().absolute())
_NAMES = SwitchKind("comma-separated names", _read_names)


SWITCHES = (
    Switch("TW_DUMP", _choice("", "stages", "passes"), "",
           "write as text: each kernel after every stage, or the graph after every pass"),
    Switch("TW_DUMP_DIR", _DIRECTORY, "tw-dump",
           "where dumps go: <dir>/<kernel or graph>/NN-<stage or pass>.txt"),
    Switch("TW_PRINT_AFTER", _NAMES, "",
           "print the program after these passes, or after `all`"),
    Switch("TW_VERIFY", _number(int, "0 | 1 | 2", 0, 2), "1",
           "check the program: never, after each stage, after each pass and schedule step"),
    Switch("TW_LOG", _choice("", "debug", "info", "warning"), "",
           "show what the package logs from this level on, on standard error"),
    Switch("TW_TIME", _flag("0", "1"), "0",
           "print how long each stage and pass took, on standard error"),
    Switch("TW_OVERRIDE_DIR", _optional(_DIRECTORY), "",
           "take a kernel's loops from <dir>/<kernel>.loops (`compile --emit loops` writes them)"),
    Switch("TW_CACHE", _flag("off", "on"), "on",
           "keep compiled code between runs"),
    Switch("TW_CACHE_DIR", _DIRECTORY, "~/.cache/tilewright",
           "where compiled code is kept; $XDG_CACHE_HOME/tilewright where that is set"),
    Switch("TW_CACHE_LIMIT_GB", _number(float, "number >= 0", 0, float("inf")), "20",
           "size of the cache beyond which the longest unused files are removed"),
    Switch("TW_MEMORY_LIMIT_GB", _number(float, "number >= 0", 0, float("inf")), "inf",
           "largest tensor of a model, and memory of a run without inputs and weights"),
    Switch("TW_COMPILE_LIMIT_S", _number(float, "number >= 0", 0, float("inf")), "inf",
           "seconds that compiling a model may take"),
    Switch("TW_THREADS", _optional(_number(int, "integer >= 1", 1, 4096)), "",
           "threads a model runs on; empty: as many as the process may use cores"),
    Switch("TW_SPIN_US", _number(int, "integer >= 0", 0, 10**6), "50",
           "microseconds that a model's idle threads poll for work before they sleep"),
    Switch("TW_GPU_SYNC", _flag("0", "1"), "0",
           "wait for the GPU after every kernel, so that one that fails is known by its name"),
    Switch("TW_TRACE_RULES", _flag("0", "1"), "0",
           "print every rewrite: the rule, before, after"),
)  # fmt: skip
_BY_FIELD = {switch.field: switch for switch in SWITCHES}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The switches, read and checked; `SWITCHES` says what each means."""

    dump: str
    dump_dir: Path
    print_after: tuple[str, ...]
    verify: int
    log: str
    time: bool
    override_dir: Path | None
    cache: bool
    cache_dir: Path
    cache_limit_gb: float
    memory_limit_gb: float
    compile_limit_s: float
    threads: int | None
    spin_us: int
    gpu_sync: bool
    trace_rules: bool


def read_config(environ: Mapping[str, str]) -> Config:
    """The switches as these variables set them; an empty variable counts as unset."""
    values = {
        name: _check(switch, environ.get(switch.name) or _default(switch, environ))
        for name, switch in _BY_FIELD.items()
    }
    return Config(**values)


def config() -> Config:
    """The switches in force here: the innermost `override`, or else the process's environment."""
    return _overridden.get() or _of_process()


def is_inherited() -> bool:
    """Whether a process that is started here has the same switches: no `override` changes any."""
    return config() == _of_process()


def inherited_environment() -> dict[str, str]:
    """The variables of this process, for a program that it starts."""
    return dict(os.environ)


@contextmanager
def override(**values: Any) -> Iterator[Config]:
    """Change switches, by field name, in a `with` block; threads started in it do not see that."""
    changed = replace(config(), **{name: _check_field(name, v) for name, v in values.items()})
    token = _overridden.set(changed)
    try:
        yield changed
    finally:
        _overridden.reset(token)


_overridden: ContextVar[Config | None] = ContextVar("tilewright_config", default=None)


@cache
def _of_process() -> Config:
    return read_config(os.environ)


def _default(switch: Switch, environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_CACHE_HOME", "")
    # The XDG standard says that a relative path there must be ignored.
    if switch.name == "TW_CACHE_DIR" and os.path.isabs(base):
        return os.path.join(base, "tilewright")
    return switch.default


def _check_field(name: str, value: object) -> Any:
    if name not in _BY_FIELD:
        raise ConfigError(
            "config.unknown", f"no switch named {name!r}", help=f"known: {', '.join(_BY_FIELD)}"
        )
    return _check(_BY_FIELD[name], value)


def _check(switch: Switch, value: object) -> Any:
    try:
        return switch.kind.read(value)
    # RuntimeError: `~` on a machine where the user has no home.
    except (ValueError, TypeError, KeyError, OverflowError, RuntimeError) as error:
        raise ConfigError(
            "config.value",
            f"{switch.name} cannot be {value!r}",
            help=f"use {switch.kind.words} ({switch.meaning})",
        ) from error
