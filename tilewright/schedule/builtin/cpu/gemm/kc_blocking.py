"""KC: how K is cut into blocks, for a near cache or for narrow accumulators.

A block of KC steps of a packed panel of B stays in L1 for all row tiles. Where products may be
accumulated in their own narrow type (f16), a block is what one accumulator adds up before its value
is added to a wider one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, prod

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block
from tilewright.ops.accumulation import F16_MAX_TERMS, accumulation_chunk
from tilewright.schedule.analysis.blocks import (
    allows_narrow_accumulation,
    reductions,
    term_of,
    value_of,
)
from tilewright.schedule.analysis.reduction import is_product
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    divisors,
    largest_divisor,
)
from tilewright.schedule.builtin.cpu.gemm.panel_costs import MIN_KC
from tilewright.schedule.builtin.cpu.parallelize import load_imbalance
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# The shortest block that a search may choose.
MIN_SEARCHED_KC = 32
# Column panels that share a block of rows: more save little.
MAX_NC_PANELS = 4
# Loading the block of a panel takes as long as this many row tiles that use it.
LOADING = 2.0
# Loading the block of rows anew takes this part of a panel's time.
LOADING_ROWS = 0.05
# Narrow accumulators of an element: each adds up half of the terms. Registers hold no more.
ACCUMULATORS = 2
# Fewer terms gain nothing by a second accumulator.
MIN_SPLIT_K_STEPS = 48


@dataclass(frozen=True)
class KBlock:
    """A block of `kc` steps of K: `factor` iterations of one loop, and all `inner` loops in it.

    `narrow` blocks are accumulated in the type of their products. A factor of 0 is K as a whole.
    """

    inner: int
    factor: int
    kc: int
    narrow: bool = False


def default_kc(block: Block, tile: Microkernel, target: CpuTarget) -> KBlock | None:
    """How to cut K for the caches; `None` if all of K is short enough.

    A block is whole inner loops (the channels under one tap of a filter), or a part of one, such
    that its part of the panel takes half of L1; the last part of a sum of products may be padded.
    Where vectors are so wide that even the shortest block exceeds L1, panels stay whole in L2.
    """
    extents = _extents(block)
    step = tile.nr * value_of(block).dtype.bytes
    most = max(MIN_KC, target.l1 // 2 // step)
    if prod(extents) <= 3 * most // 2:  # also where a size is symbolic
        return None
    if most * step > target.l1 and prod(extents) * step <= target.l2 // 4:
        return None
    inner = 0
    while prod(extents[len(extents) - inner - 1 :]) <= most:
        inner += 1
    if inner:
        return KBlock(inner, 1, prod(extents[len(extents) - inner :]))
    part = _part(block, extents[-1], most, tile.lanes if tile.lane_fma else 1)
    return KBlock(0, part, part) if part else None


def _part(block: Block, extent: int, most: int, unit: int) -> int:
    """Of how many steps a part of the innermost loop is, 0 if it cannot be cut well.

    Parts are multiples of `unit`, equal ones if they are not too short; the last of as many as
    possible is padded.
    """
    exact = largest_divisor(extent, most)
    if exact > most // 2 and exact % unit == 0:
        return exact
    even = unit * ceil(extent / ceil(extent / most) / unit)
    return even if is_product(term_of(block)) else 0


def has_k_blocks(block: Block, unit: int) -> bool:
    """Whether K can be cut into blocks of a multiple of `unit` steps that are not too short."""
    *outer, last = _extents(block)
    return bool(last) and (bool(outer and last <= MIN_KC) or _part(block, last, MIN_KC, unit) > 0)


def choose_kc(
    sch: Schedule, block: Block, tile: Microkernel, target: CpuTarget, reused: bool
) -> KBlock | None:
    """How to cut K for the caches, `None` for not at all; by default only for `reused` blocks."""
    k_block = default_kc(block, tile, target) if reused else None
    default = (0, 0) if k_block is None else (k_block.inner, k_block.factor)
    inner, factor = sch.choose(
        f"{block.name}.kc", default, lambda: _candidates(block, tile, default)
    )
    return KBlock(inner, factor, _steps(block, inner, factor)) if factor else None


def _candidates(block: Block, tile: Microkernel, default: tuple[int, int]) -> list[tuple[int, int]]:
    """All ways to cut, `(inner, factor)` each: whole inner loops, and equal parts of the next.

    By `default`, parts may be unequal.
    """
    extents = _extents(block)
    total = prod(extents)
    found = [
        (inner, factor)
        for inner in range(len(extents))
        for factor in divisors(extents[len(extents) - 1 - inner])
        if total and MIN_SEARCHED_KC <= _steps(block, inner, factor) < total
    ]
    whole = [c for c in found if c[0] or c[1] % (tile.lanes if tile.lane_fma else 1) == 0]
    whole = [(0, 0), *sorted(whole, key=lambda c: _steps(block, *c))]
    return whole if default in whole else [*whole, default]


def _steps(block: Block, inner: int, factor: int) -> int:
    """The steps of K in `factor` iterations of the loop around the `inner` innermost ones."""
    extents = _extents(block)
    return factor * prod(extents[len(extents) - inner :])


def _extents(block: Block) -> list[int]:
    """The extents of the axes of K, 0 for a symbolic one."""
    return [as_int(it.extent) or 0 for it in reductions(block)]


def narrow_k_block(block: Block) -> KBlock | None:
    """How to cut K for narrow accumulators; `None` where products must be accumulated wide."""
    extents = _extents(block)
    found = accumulation_chunk(extents) if allows_narrow_accumulation(block) else None
    if found is None:
        return None
    if found.inner == len(extents):
        return KBlock(found.inner, 0, prod(extents), narrow=True)
    return KBlock(found.inner, found.part, _steps(block, found.inner, found.part), narrow=True)


def accumulator_count(block: Block, lanes: int, by_lane: bool) -> int:
    """How many narrow accumulators each element has; each adds up fewer terms, more exactly."""
    k_block = narrow_k_block(block)
    if k_block is None or k_block.kc < MIN_SPLIT_K_STEPS:
        return 1
    inside = k_block.factor if k_block.inner == 0 else as_int(reductions(block)[-1].extent)
    return 1 if inside is None or inside % (lanes if by_lane else ACCUMULATORS) else ACCUMULATORS


def blocks_per_part(block: Block, k_block: KBlock) -> tuple[int, int]:
    """How many blocks there are, and how many make a part, which is accumulated narrow as well."""
    count = prod(_extents(block)) // k_block.kc
    return count, largest_divisor(count, max(1, F16_MAX_TERMS // k_block.kc))


def choose_group(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    k_block: KBlock,
    target: CpuTarget,
) -> tuple[int, int]:
    """How many row tiles and column panels share a block of K: MC and NC in tiles.

    A block of the group's rows of A takes a quarter of L2; its accumulators are far smaller. Fewer
    rows are better than threads without a group. The last group may be padded.
    """
    assert axes.m is not None
    tiles = -(-(as_int(axes.m.extent) or 1) // tile.mr)
    panels = -(-(as_int(axes.n.extent) or 1) // tile.nr)
    fitting = target.l2 // 4 // (k_block.kc * value_of(block).dtype.bytes * tile.mr)
    batch = prod(as_int(it.extent) or 1 for it in axes.batch)

    def cost(rows: int) -> float:
        groups = -(-tiles // rows)
        imbalance = load_imbalance(batch * groups * panels, target.cores)
        return imbalance * (1 + LOADING / rows) * groups * rows / tiles

    def sizes() -> list[int]:
        return sorted({*divisors(tiles), *even_parts(tiles)})

    most = min(sizes(), key=lambda n: max(n / max(1, fitting), fitting / n))
    mc_tiles = min((n for n in sizes() if n <= most), key=cost)
    mc_tiles = sch.choose(f"{block.name}.mc_tiles", mc_tiles, sizes, cost)
    groups = batch * -(-tiles // mc_tiles)

    def panel_cost(together: int) -> float:
        imbalance = load_imbalance(groups * (panels // together), target.cores)
        return imbalance * (1 + LOADING_ROWS / together)

    few = [n for n in divisors(panels) if n <= MAX_NC_PANELS]
    nc_panels = min(few, key=panel_cost)
    name = f"{block.name}.nc_panels"
    return mc_tiles, sch.choose(name, nc_panels, lambda: divisors(panels), panel_cost)


def even_parts(count: int) -> list[int]:
    """The sizes of parts, the largest of as many, into which a number is divided evenly.

    >>> even_parts(7)   # 1 part, 2, 3 or 4, and 7
    [1, 2, 3, 4, 7]
    """
    few = range(1, isqrt(count) + 2)
    many = (-(-count // size) for size in few)
    return sorted({-(-count // parts) for parts in (*few, *many)})
