"""The tile of rows and keys in which tensor cores of a GPU compute attention.

    softmax(q k') v   →   fused_attention(q, k, v) {tile=[64, 64]}

Attention without a tile stays two GEMMs with a softmax between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import BF16, F16
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.tiled_loops import GROUPED_ROWS, WIDTHS, padded
from tilewright.passes.attention.attention_cost import AttentionTile, AttentionWork
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of a thread block, and the keys of a step: more where heads leave registers for them.
ROWS = (64, 32)
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
# 16-bit elements of a vector, and its words.
VECTOR_ELEMENTS, VECTOR_WORDS = VECTOR_BYTES // 2, VECTOR_BYTES // 4


def attention_tile(target: GpuTarget, p: Problem) -> tuple[int, ...]:
    """Rows and keys of a tile, and the split-KV factor if any; empty if there is no tile."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    known = [n for n in sizes if n is not None and n % VECTOR_ELEMENTS == 0 and n <= WIDTHS[-1]]
    kind = str(p.out.dtype)
    if target.warp_mma(kind) is None or p.out.dtype not in (BF16, F16) or len(known) < len(sizes):
        return ()
    held = _Fragments(target, padded(known[0]), padded(known[1]), _has_rows(p, "k"))
    # A batch that only a run gives may be one, or many, which would not be worth parts.
    rows, batches = as_int(p.q[-2]), prod(as_int(n) or 1 for n in p.q[:-2])
    if rows is None:
        return ROWS[0], held.keys(ROWS[0])
    seen = _seen(p, rows, as_int(p.k[-2]))
    if seen is None:
        return _without_length(held, rows, batches)
    known_batches = all(as_int(n) is not None for n in p.q[:-2])
    most = ATTENTION.split_max if known_batches or rows <= ROWS[0] else 1
    choices = [
        (work.us(tile, parts, target), tile.rows, tile.keys, parts)
        for tile in _tiles(held, p, rows)
        for columns in ([padded(n, tile.rows) for n in known],)
        for work in (AttentionWork(batches, rows, *seen, *columns),)
        for parts in range(1, min(most, -(-seen[1] // tile.keys)) + 1)
    ]
    _, *tile, parts = min(choices, key=lambda choice: choice[0])
    return (*tile, parts) if parts > 1 else tuple(tile)


def _without_length(held: _Fragments, rows: int, batches: int) -> tuple[int, ...]:
    """The tile for a number of keys that only a run gives."""
    if rows > ROWS[0]:
        return ROWS[0], held.keys(ROWS[0])
    height = held.height(rows)
    blocks = batches * -(-rows // height)
    parts = min(ATTENTION.split_unknown, SPLIT_BLOCKS * held.target.sm_count // blocks)
    return (height, held.keys(height), parts) if parts > 1 else (height, held.keys(height))


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
