"""The spaces of schedules by name: what `tilewright tune --space` takes."""

from __future__ import annotations

from tilewright.core.registry import Registry
from tilewright.tune.space.schedule_space import ScheduleSpace

SCHEDULE_SPACES: Registry[type[ScheduleSpace]] = Registry(
    "space of schedules",
    {"constructed": "tilewright.tune.space.constructed:ConstructedSpace"},
)
