"""Measured spaces that come with the package, by name; a path names a file of one's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tilewright.core.errors import ConfigError
from tilewright.tune.space.files import read_space
from tilewright.tune.space.replay import ReplaySpace

DATA = Path(__file__).parent / "data"
SPACES = {
    "convolution-a100": "a 2-D convolution with a 15x15 filter, in CUDA on an A100",
    "dedispersion-a4000": "dedispersion of radio signals, in CUDA on an A4000",
}


@cache
def replay_space(name: str) -> ReplaySpace:
    """The space called `name`, or that in the file `name`."""
    path = next(DATA.glob(f"{name}.json*")) if name in SPACES else Path(name)
    if not path.is_file():
        raise ConfigError(
            "space.unknown",
            f"no measured space named {name!r}, and no such file",
            help=f"known: {', '.join(SPACES)}",
        )
    return read_space(path)


def program_spaces() -> tuple[str, ...]:
    """Those that come with the package and are of programs, so that one can teach another."""
    found = tuple(name for name in SPACES if replay_space(name).about.columns)
    if not found:
        raise ConfigError(
            "space.no-programs",
            "no measured space of programs comes with this package",
            help="name files that `tilewright lab record` wrote with --space",
        )
    return found
