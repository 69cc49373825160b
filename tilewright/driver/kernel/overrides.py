"""Kernels taken from files: `<kernel>.loops` in a folder replaces the scheduled loops.

What a file holds is verified, and every access in it is proved to be in bounds, before it runs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from tilewright.core.errors import ConfigError, Loc
from tilewright.ir.loop.nodes import Func, Seq
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import Trace

LOOPS = ".loops"
"""The ending of a file with the text of one loop function."""


def overridden(scheduled: ScheduledFunc, folder: Path | None) -> ScheduledFunc:
    """The function as its file in `folder` has it, if there is one."""
    if folder is None or not (path := folder / f"{scheduled.func.name}{LOOPS}").is_file():
        return scheduled
    return ScheduledFunc(read_override(path, scheduled.func), Trace(), "override")


def check_overrides(folder: Path | None, kernels: Collection[str]) -> None:
    """Refuse files that belong to none of the model's kernels: a name may be misspelt."""
    if folder is None:
        return
    unused = sorted({p.stem for p in folder.glob(f"*{LOOPS}")} - set(kernels))
    if unused or not folder.is_dir():
        what = "".join(f"holds {name}{LOOPS}, but no kernel has that name" for name in unused[:1])
        raise ConfigError(
            "override.unused",
            f"{folder} {what or 'is not a folder'}",
            help=f"the kernels are {', '.join(sorted(kernels))}",
        )


def read_override(path: Path, original: Func) -> Func:
    """The function in a file, checked: it must be called exactly as `original` is."""
    try:
        func = parse_func(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("override.unreadable", f"cannot read {path}: {error}") from error
    func = replace(func, loc=Loc(str(path)))
    verify_func(func)
    for part in ("name", "params", "outputs", "layouts"):
        if getattr(func, part) != getattr(original, part):
            header = print_func(replace(original, body=Seq(()))).partition("{")[0].strip()
            raise ConfigError(
                "override.signature",
                f"the {part} of function {func.name} must stay as they are",
                loc=func.loc,
                help=f"begin it with: {header}",
            )
    # Imported here because few models have overrides, and proofs take isl.
    from tilewright.ir.loop.check_bounds import check_bounds

    check_bounds(func, original)
    return func
