"""Groups of row tiles that take turns with one panel of columns after another."""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import loop_of, summed_type, typical_extent
from tilewright.schedule.analysis.tile_axes import Roles, panels_bytes, steps_of
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import RegisterTile, divisors
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# By what share of the tiles that there are those of whole groups may be more.
MOST_EXTRA = 0.01


def choose_group(
    sch: Schedule, block: Block, roles: Roles, tile: RegisterTile, tiles: int, target: CpuTarget
) -> int:
    """How many of the row tiles make a group; 0 where nobody knows how many there are.

    A group's rows stay in the second cache for all panels; so does what comes of them, where panels
    are so few that reading them again for every group costs nothing.
    """
    if not tiles or roles.row is None:
        return 0
    few = panels_bytes(block, roles) <= target.l2 // 4
    elements = steps_of(block) + (typical_extent(roles.column.extent) if few else 0)
    room = target.l2 // 2 // (elements * summed_type(block).bytes * tile.rows)
    default = group_size(tiles, max(1, room))
    return sch.choose(f"{block.name}.together", default, lambda: divisors(tiles))


def group_size(tiles: int, wanted: int) -> int:
    """How many tiles make a group, near to what is wanted, if the last one may lack a few.

    >>> group_size(523, 68)   # 8 groups have 528
    66
    """

    def fits(n: int) -> bool:
        return -tiles % n <= tiles * MOST_EXTRA

    wanted = min(wanted, tiles)
    fewer = next(n for n in range(wanted, 0, -1) if fits(n))
    more = next((n for n in range(wanted + 1, min(2 * wanted, tiles) + 1) if fits(n)), fewer)
    return min(fewer, more, key=lambda n: max(n / wanted, wanted / n))


def split_rows(
    sch: Schedule, roles: Roles, tile: RegisterTile, together: int
) -> tuple[list[str], list[str], list[str]]:
    """The loops over groups of row tiles, over the tiles of a group, and over a tile's rows."""
    if roles.row is None:
        return [], [], []
    if together == 0:
        outer, inner = sch.split(loop_of(roles.row), [None, tile.rows])
        return [], [outer], [inner]
    group, outer, inner = sch.split(loop_of(roles.row), [None, together, tile.rows])
    return [group], [outer], [inner]
