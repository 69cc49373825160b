"""How a model is compiled: one frozen object, made at the door and passed on whole.

    options = make_options(target="x86-64-v3", precision="bf16", dims={"N": 1})
    build = lower("model.onnx", options)

Importing this imports no stage of the compiler: a model that is in the cache needs none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.core.arguments import (
    flag_argument,
    function_argument,
    mapping_argument,
    names_argument,
    path_argument,
    text_argument,
    threads_argument,
    wrong_type,
)
from tilewright.core.config import config
from tilewright.core.errors import ConfigError
from tilewright.driver.precision import check_precision, machine_for
from tilewright.driver.timings import Timings
from tilewright.target.registry import resolve_target
from tilewright.target.target import Target

if TYPE_CHECKING:
    from tilewright.driver.kernel.backend import ScheduleProvider
    from tilewright.tune.tuned_schedules import TunedSchedules

Progress = Callable[[str], None]
"""Is told what the compiler does next."""


def no_progress(stage: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class CompileOptions:
    """How a model is compiled, everything resolved and checked; `make_options` makes it."""

    target: Target
    precision: str = "f32"
    # Values of symbolic dimensions, by name.
    dims: Mapping[str, int] = field(default_factory=dict)
    # Names of graph passes that are not run, in order.
    disable_passes: tuple[str, ...] = ()
    # The target as the user spelled it: a segmented model is compiled for it again when loaded.
    target_name: str = "native"
    # Threads that the model runs on; one a core if None.
    threads: int | None = None
    # Whether results are kept on disk and used again.
    cache: bool = True
    # Whether indices that come from data are checked when the model runs.
    checks: bool = True
    # A folder whose files `<kernel>.loops` take the place of scheduled kernels.
    overrides: Path | None = None
    # Tuned schedules that beat the built-in ones.
    records: TunedSchedules | None = None
    # Schedules kernels in place of the built-in rules and the records: for the tuner and `bisect`.
    schedules: ScheduleProvider | None = None
    timings: Timings | None = None
    progress: Progress = no_progress

    def timed(self) -> CompileOptions:
        """These options with timings of their own, unless they have some."""
        return self if self.timings is not None else replace(self, timings=Timings())

    @property
    def clock(self) -> Timings:
        """The timings of the compilation under way."""
        assert self.timings is not None, "`timed` gives a compilation its timings"
        return self.timings


def make_options(
    target: str = "native",
    precision: str = "f32",
    dims: Mapping[str, int] | None = None,
    *,
    disable_passes: Collection[str] = (),
    threads: int | None = None,
    cache: bool = True,
    checks: str = "on",
    overrides: str | os.PathLike[str] | None = None,
    tuned: str | os.PathLike[str] | None = None,
    nearest_workload: bool = False,
    timings: Timings | None = None,
    progress: Progress = no_progress,
) -> CompileOptions:
    """Options from what a user gives, see `compile`: names are resolved, records read."""
    resolved = resolve_target(text_argument("target", target))
    machine = machine_for(resolved, check_precision(text_argument("precision", precision)))
    disabled = names_argument("disable_passes", disable_passes)
    sizes = {} if dims is None else mapping_argument("dims", dims, 'sizes by name, as {"N": 1}')
    if timings is not None and not isinstance(timings, Timings):
        raise wrong_type("timings", timings, "a Timings")
    function_argument("progress", progress)
    folder = None if overrides is None else path_argument("overrides", overrides)
    nearest = flag_argument("nearest_workload", nearest_workload)
    return CompileOptions(
        machine,
        precision,
        dict(sizes),
        tuple(sorted({name.replace("-", "_") for name in disabled})),
        target,
        threads_argument(threads),
        flag_argument("cache", cache),
        _are_on(checks),
        folder or config().override_dir,
        _records(tuned, nearest, machine),
        timings=timings,
        progress=progress,
    )


def _are_on(checks: str) -> bool:
    if checks not in ("on", "off"):
        message = f"checks are {checks!r}"
        raise ConfigError("compile.checks", message, help='give "on" or "off"')
    return checks == "on"


def _records(
    tuned: str | os.PathLike[str] | None, nearest_workload: bool, target: Target
) -> TunedSchedules | None:
    """What the named file of records says, if one is named."""
    if tuned is None:
        return None
    # Imported here because most models are compiled without records.
    from tilewright.tune.tuned_schedules import read_tuned_schedules

    return read_tuned_schedules(path_argument("tuned", tuned), target, nearest_workload)
