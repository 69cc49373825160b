"""The tile of rows and keys in which tensor cores of a GPU compute attention.

    attention in any blocks   →   tile_attention(64, 64)         or, with the keys in parts,
                                  tile_attention(64, 64, 4)

A search may choose any of the tiles that there are; the default is what `attention_cost.py` expects
to be fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tilewright.arith.expr import as_int
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.stated_problem import problem_of
from tilewright.ops.attention.tiled_loops import GROUPED_ROWS, WIDTHS, padded
from tilewright.passes.attention.gpu_attention import (
    SIMT_KEYS,
    SIMT_ROWS,
    TILE_ROWS,
    VECTOR_ELEMENTS,
    fits_tensor_cores,
    fits_threads,
)
from tilewright.schedule.builtin.gpu.attention_cost import AttentionTile, AttentionWork
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of a thread block, and the keys of a step: more where heads leave registers for them.
ROWS = (TILE_ROWS, 32)
KEYS, MORE_KEYS, FEWER_KEYS, FEWEST_KEYS = 64, 128, 32, 16
# The widest heads whose accumulators leave registers for `KEYS` by wgmma, which has no instruction
# for fewer.
WGMMA_WIDTH = 192
# Registers of a thread besides fragments and what its copies take.
WORKING_REGISTERS = 40
# The widest heads that leave a warp-specialized kernel registers for `MORE_KEYS`, and for masks.
WARP_SPECIALIZED_WIDTH, MASKED_WIDTH = 128, 192
# The rows of one warp: the fewest of a tile.
WARP_ROWS = 16
# Thread blocks for each SM where it is unknown how long they take.
SPLIT_BLOCKS = 2
# The words of a vector.
VECTOR_WORDS = VECTOR_BYTES // 4

Tile = tuple[int, int, int]
"""Rows, keys, and the parts that the keys are gone through in."""


def choose_tile(sch: Schedule, target: GpuTarget) -> None:
    """Give a function that says it computes attention its tile, if tensor cores can compute it."""
    p = problem_of(sch.func)
    if p is not None and fits_threads(target, p):
        sch.tile_attention(SIMT_ROWS, SIMT_KEYS)
    if p is None or not fits_tensor_cores(target, p):
        return
    costs = tile_costs(target, p)
    default = attention_tile(target, p, costs)
    cost = costs.__getitem__ if costs else None
    sch.tile_attention(*sch.choose("attention.tile", default, lambda: costs or (default,), cost))


def attention_tile(
    target: GpuTarget, p: Problem, costs: Mapping[Tile, float] | None = None
) -> Tile:
    """The tile that is expected to be fastest."""
    costs = tile_costs(target, p) if costs is None else costs
    if costs:
        return min(costs, key=costs.__getitem__)
    held, rows = _fragments(target, p), as_int(p.q[-2])
    if rows is None or rows > ROWS[0]:
        return ROWS[0], held.keys(ROWS[0]), 1
    height = held.height(rows)
    blocks = _batches(p) * -(-rows // height)
    parts = min(ATTENTION.split_unknown, SPLIT_BLOCKS * target.sm_count // blocks)
    return height, held.keys(height), max(1, parts)


def tile_costs(target: GpuTarget, p: Problem) -> dict[Tile, float]:
    """The microseconds of every tile, none where a length that only a run gives decides."""
    held, rows = _fragments(target, p), as_int(p.q[-2])
    seen = None if rows is None else _seen(p, rows, as_int(p.k[-2]))
    if rows is None or seen is None:
        return {}
    known_batches = all(as_int(n) is not None for n in p.q[:-2])
    most = ATTENTION.split_max if known_batches or rows <= ROWS[0] else 1
    return {
        (tile.rows, tile.keys, parts): work.us(tile, parts, target)
        for tile in _tiles(held, p, rows)
        for columns in ([padded(n, tile.rows) for n in _sizes(p)],)
        for work in (AttentionWork(_batches(p), rows, *seen, *columns),)
        for parts in range(1, min(most, -(-seen[1] // tile.keys)) + 1)
    }


def _sizes(p: Problem) -> list[int]:
    """The columns of queries and keys, and those of values."""
    return [as_int(p.q[-1]) or 0, as_int(p.v[-1]) or 0]


def _batches(p: Problem) -> int:
    """How many there are; one that only a run gives may be one, or many, not worth parts."""
    return prod(as_int(n) or 1 for n in p.q[:-2])


def _fragments(target: GpuTarget, p: Problem) -> _Fragments:
    deep, wide = map(padded, _sizes(p))
    return _Fragments(target, deep, wide, _has_rows(p, "k"))


def _tiles(held: _Fragments, p: Problem, rows: int) -> Iterator[AttentionTile]:
    """The tiles that a problem can have."""
    widest = max(held.deep, held.wide)
    grouped = held.target.warpgroup_mma(str(p.out.dtype)) is not None
    masked = any(p.ins[3:])
    for height in held.heights(rows):
        wgmma = height == ROWS[0] and grouped and not held.narrow and widest <= WGMMA_WIDTH
        kind = "warpgroup" if wgmma else "warp"
        yield held.tile(height, KEYS if wgmma else held.keys(height), kind)
        if height == ROWS[0] and widest <= KEYS and not masked:
            yield held.tile(height, MORE_KEYS, kind)
    loadable = all(_has_rows(p, operand) for operand in "qkv") and p.attrs.window_left < 0
    fits = widest <= (MASKED_WIDTH if masked else WIDTHS[-1])
    if held.target.has("setmaxnreg") and grouped and loadable and fits and rows > ROWS[0]:
        keys = MORE_KEYS if widest <= WARP_SPECIALIZED_WIDTH else KEYS
        yield held.tile(GROUPED_ROWS, keys, "warp_specialized")


@dataclass(frozen=True)
class _Fragments:
    """What the threads of a tile hold where warps multiply, by the padded sizes of a head.

    A lane has queries in 16 bits, results and scores in f32 and weights in 16 bits, of a row's
    quarter of half of the rows. Of the vectors that it copies, addresses are offsets of one another
    if rows are as many vectors as lanes divide into; else each has registers of its own, and so has
    each element of keys that do not lie `in_rows`. Without `cp.async` their words pass through it.
    """

    target: GpuTarget
    deep: int
    wide: int
    in_rows: bool

    def keys(self, rows: int) -> int:
        """The keys of an iteration that leave a thread enough registers."""
        return next((n for n in (KEYS, FEWER_KEYS) if self._fits(rows, n)), FEWEST_KEYS)

    @property
    def narrow(self) -> bool:
        """Whether rows are shorter than wgmma reads them."""
        return min(self.deep, self.wide) < KEYS

    def tile(self, rows: int, keys: int, kind: str) -> AttentionTile:
        """A tile with what its threads hold."""
        threads = rows // WARP_ROWS * self.target.warp_size
        registers = min(self.target.registers_per_thread, self._registers(rows, keys))
        return AttentionTile(rows, keys, kind, threads, registers)

    def height(self, rows: int) -> int:
        """The fewest rows of a tile that has all of them, and whose threads can hold it."""
        return next(n for n in self.heights(rows) if rows <= n)

    def heights(self, rows: int) -> tuple[int, ...]:
        """The rows of tiles whose threads can hold them, fewest first: at least half are used."""
        least = WARP_ROWS if rows <= WARP_ROWS else ROWS[-1]
        heights = [n for n in (WARP_ROWS, *reversed(ROWS)) if n >= least]
        fitting = [n for n in heights if self._fits(n, FEWEST_KEYS)] or heights[-1:]
        return tuple(n for n in fitting if n < 2 * rows) or (fitting[0],)

    def _fits(self, rows: int, keys: int) -> bool:
        return self._registers(rows, keys) <= self.target.registers_per_thread

    def _registers(self, rows: int, keys: int) -> int:
        threads = rows // WARP_ROWS * self.target.warp_size
        vectors = keys * (self.deep + self.wide) // (VECTOR_ELEMENTS * threads)
        sizes = (self.deep // VECTOR_ELEMENTS, self.wide // VECTOR_ELEMENTS)
        uneven = any(self.target.warp_size % n for n in sizes)
        copies = vectors if uneven else vectors // 4
        copies += 0 if self.in_rows else keys * self.deep // threads
        copies += 0 if self.target.has("cp.async") else vectors * VECTOR_WORDS
        fragments = self.deep // 4 + self.wide // 2 + keys // 2 + keys // 4
        return fragments + copies + WORKING_REGISTERS


def _has_rows(p: Problem, operand: str) -> bool:
    """Whether each query, key or value lies in memory as a row."""
    perm = getattr(p.attrs, f"{operand}_perm")
    return not perm or perm[-1] == len(perm) - 1


def _seen(p: Problem, rows: int, keys: int | None) -> tuple[int, int] | None:
    """How many keys the first and the last row see, `None` if it is unknown."""
    attrs = p.attrs
    offset = as_int(attrs.offset)
    if attrs.window_right < 0 or attrs.bottom_right or offset is None:
        return None if keys is None else (keys, keys)
    before = offset + attrs.window_right
    most = rows + before if keys is None else keys
    first, last = (max(1, min(most, n + before)) for n in (1, rows))
    return first, last
