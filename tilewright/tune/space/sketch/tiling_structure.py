"""The multi-level tiling structure of a kind of target: spatial and reduction levels, bindings.

    SSRSRS      each spatial axis in four parts, each reduction in two; parts in this order

The first parts are for threads, the last for vectors. A GPU's first three are the grid, virtual
threads, which every thread unrolls, and threads: `gpu_tiling.py`.
"""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.target.target import Target


@node
class TilingStructure:
    """The levels of tiles, and what the first spatial ones become, if they are bound."""

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


CPU = TilingStructure("SSRSRS")
GPU = TilingStructure("SSSRRSRS", ("grid", "unroll", "thread"))
STRUCTURES = {"nvptx64": GPU}


def tiling_structure(target: Target) -> TilingStructure:
    """The structure for a target: that of CPUs unless its architecture has another."""
    return STRUCTURES.get(target.architecture, CPU)
