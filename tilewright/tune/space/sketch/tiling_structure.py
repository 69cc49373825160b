"""How a kind of machine is tiled: levels of spatial and reduction loops, and what runs them.

    SSRSRS      each spatial axis in four parts, each reduction in two; parts in this order

The first parts are for threads, the last for vectors. A GPU's first three are blocks, virtual
threads and threads.
"""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.target.cpu import CpuTarget


@node
class Form:
    """The levels of tiles, and the names under which the first spatial ones are bound, if any."""

    levels: str
    binds: tuple[str, ...] = ()

    @property
    def spatial(self) -> int:
        """Parts of a spatial axis."""
        return self.levels.count("S")

    @property
    def reduced(self) -> int:
        """Parts of a reduction."""
        return self.levels.count("R")


CPU = Form("SSRSRS")
GPU = Form("SSSRRSRS", ("block", "virtual", "thread"))
FORMS = {"nvptx64": GPU}


def form_of(target: CpuTarget) -> Form:
    """The form for a target: that of CPUs unless its architecture has another."""
    return FORMS.get(target.architecture, CPU)
