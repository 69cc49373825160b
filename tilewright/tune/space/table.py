"""Spaces by name: of schedules of a function, and measured ones that come with the package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tilewright.core.errors import ConfigError
from tilewright.core.registry import Registry
from tilewright.ir.loop.nodes import Func
from tilewright.target.target import Target
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.tabular import TabularSpace
from tilewright.tune.space.tabular_files import read_space

MakeSpace: TypeAlias = Callable[[Func, frozenset[str], Target], ScheduleSpace]
SCHEDULE_SPACES: Registry[MakeSpace] = Registry(
    "space of schedules",
    {
        "union": "tilewright.tune.space.union:everything",
        "constructed": "tilewright.tune.space.constructed:ConstructedSpace",
        "sketches": "tilewright.tune.space.sketch.space:SketchSpace",
    },
)
"""What can be searched: a function, its constants and a target make a space."""

DATA = Path(__file__).parent / "data"
SPACES = {
    "convolution-a100": "a 2-D convolution with a 15x15 filter, in CUDA on an A100",
    "dedispersion-a4000": "dedispersion of radio signals, in CUDA on an A4000",
    "gemm_512": "our schedules of a matrix product, both sides given at run time",
    "linear_128x768x3072": "our schedules of a matrix product with constant weights",
    "linear_1x4096x4096": "the same of one row, bound by memory",
    "bmm_12x128x64": "our schedules of products of small matrices",
    "conv3x3_56x56_64to64": "our schedules of the product inside of a Winograd convolution",
    "conv3x3_28x28_128to128": "the same for fewer pixels and more channels",
    "conv3x3_14x14_256to256": "the same for still fewer pixels and more channels",
    "conv1x1_14x14_256to512_s2": "our schedules of a convolution with stride 2",
    "depthwise3x3_112x112_96to96": "our schedules of a depthwise convolution",
    "softmax_512x1000": "our schedules of a softmax",
    "layernorm_512x768": "our schedules of a layer norm",
    "rowsum_4096x4096": "our schedules of a sum of rows, bound by memory",
}


@cache
def tabular_space(name: str) -> TabularSpace:
    """The measured space called `name`, or that in the file `name`."""
    path = next(DATA.glob(f"{name}.json*")) if name in SPACES else Path(name)
    if not path.is_file():
        raise ConfigError(
            "space.unknown",
            f"no measured space named {name!r}, and no such file",
            help=f"known: {', '.join(SPACES)}",
        )
    return read_space(path)


def program_spaces() -> tuple[str, ...]:
    """Those that come with the package and are of programs, with features in common."""
    found = tuple(name for name in SPACES if tabular_space(name).about.columns)
    if not found:
        raise ConfigError(
            "space.no-programs",
            "no measured space of programs comes with this package",
            help="name files that `tilewright lab record` wrote with --space",
        )
    return found
