"""MC blocking: groups of row tiles whose rows of A, or whose results, stay in L2."""

from __future__ import annotations

from math import prod

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import accumulator_dtype, loop_of, typical_extent
from tilewright.schedule.analysis.tile_axes import TileAxes, panels_bytes, steps_of
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import divisors
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import UNASKED_STACK_BYTES, CpuTarget

# Padded tiles that full groups may add, as fractions of all tiles: more of them only where groups
# were less than half as large as wanted, and panels read again more often than that costs.
MAX_EXTRA = (0.01, 0.05, 0.1)
# Groups of results that every core transposes at least.
TASKS_PER_CORE = 4
# Bytes of results that are transposed together: they are on the stack of a thread, unasked.
MAX_TRANSPOSED = UNASKED_STACK_BYTES - 16 * 1024


def choose_mc(
    sch: Schedule, block: Block, axes: TileAxes, tile: Microkernel, tiles: int, target: CpuTarget
) -> int:
    """How many row tiles make a group; 0 where their number is symbolic.

    The rows of a group stay in L2 for all panels. So do its results, where all panels fit in L2 and
    are cheap to read again for every group. All rows of a single panel are one group: nothing is
    read twice.
    """
    if not tiles or axes.m is None:
        return 0
    few = panels_bytes(block, axes) <= target.l2 // 4
    elements = steps_of(block) + (typical_extent(axes.n.extent) if few else 0)
    fitting = target.l2 // 2 // (elements * accumulator_dtype(block).bytes * tile.mr)
    single = typical_extent(axes.n.extent) <= tile.nr
    default = tiles if single else mc_tiles_near(tiles, max(1, fitting))
    return sch.choose(f"{block.name}.mc_tiles", default, lambda: divisors(tiles))


def choose_transposed(
    sch: Schedule, block: Block, axes: TileAxes, tile: Microkernel, tiles: int, target: CpuTarget
) -> int:
    """How many row tiles of one panel make a group whose results are transposed in L2.

    Groups are tall, for long rows of what is written, but each is one task: every core has some.
    """
    room = min(target.l2 // 4, MAX_TRANSPOSED)
    fitting = room // (accumulator_dtype(block).bytes * tile.mr * tile.nr)
    panels = -(-typical_extent(axes.n.extent) // tile.nr)
    columns = prod(typical_extent(it.extent) for it in axes.batch) * panels
    fitting = max(1, min(fitting, tiles * columns // (TASKS_PER_CORE * target.cores)))
    even = -(-tiles // -(-tiles // fitting))
    return sch.choose(
        f"{block.name}.mc_tiles", even, lambda: [n for n in divisors(tiles) if n <= fitting]
    )


def mc_tiles_near(tiles: int, wanted: int) -> int:
    """The number of tiles in a group that is nearest to `wanted` and pads little.

    >>> mc_tiles_near(523, 68)   # 8 groups have 528
    66
    >>> mc_tiles_near(59, 23)    # 3 groups have 60; no groups have 59
    20
    """
    wanted = min(wanted, tiles)
    found = [_near(tiles, wanted, extra) for extra in MAX_EXTRA]
    return next((n for n in found if 2 * n >= wanted), found[0])


def _near(tiles: int, wanted: int, extra: float) -> int:
    """The number of tiles nearest to `wanted` that pads no more than a fraction."""

    def fits(n: int) -> bool:
        return -tiles % n <= tiles * extra

    fewer = next(n for n in range(wanted, 0, -1) if fits(n))
    more = next((n for n in range(wanted + 1, min(2 * wanted, tiles) + 1) if fits(n)), fewer)
    return min(fewer, more, key=lambda n: max(n / wanted, wanted / n))


def split_rows(
    sch: Schedule, axes: TileAxes, tile: Microkernel, together: int
) -> tuple[list[str], list[str], list[str]]:
    """The loops over groups of row tiles, over the tiles of a group, and over a tile's rows."""
    if axes.m is None:
        return [], [], []
    if together == 0:
        outer, inner = sch.split(loop_of(axes.m), [None, tile.mr])
        return [], [outer], [inner]
    group, outer, inner = sch.split(loop_of(axes.m), [None, together, tile.mr])
    return [group], [outer], [inner]
