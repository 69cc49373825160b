"""A space whose candidates are checked where they are built, in several processes at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.tune.candidate import Candidate
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.space import Choose, Space


class UncheckedSpace(Space):
    """For strategies: proposing does not wait for a check, a build worker refuses instead."""

    def __init__(self, space: ScheduleSpace) -> None:
        self.space = space
        self.name = space.name

    def build(self, choose: Choose) -> None:
        """Ask as the space does."""
        self.space.build(choose)

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """Those of the space."""
        return self.space.features(candidates)
