"""How large a register tile to compute at once: a micro-performance model of the inner loop.

One step of the reduction on a tile of `rows` by `vectors` vector registers does rows x vectors
multiply-adds, loads `vectors` vectors of the one operand and `rows` scalars of the other. The tile
must fit the register file, keep the multiply-add units busy through their latency, and waste little
where it does not divide the problem.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.target.cpu import Target

# Multiply-adds in flight that hide their latency: two units, four cycles each.
PARALLEL_CHAINS = 8
MAX_ROWS = 16
SPARE_REGISTERS = 4
MAX_VECTORS = 8


@dataclass(frozen=True)
class RegisterTile:
    """A tile of `rows` by `columns` elements, `lanes` of them in a vector."""

    rows: int
    columns: int
    lanes: int


def choose_tile(rows: int, columns: int, bits: int, target: Target, shared: bool) -> RegisterTile:
    """The cheapest tile for a problem of `rows` by `columns`.

    `shared` says that each loaded vector serves all rows (a matrix product); otherwise every
    multiply-add loads its own (depthwise convolution, pooling).
    """
    lanes = target.lanes(bits)
    # Only shared vectors can be padded at no cost: their operand is packed.
    exact = not shared and columns % lanes == 0
    best: tuple[float, int, int] | None = None
    for vectors in range(1, MAX_VECTORS + 1):
        for height in range(1, min(MAX_ROWS, rows) + 1):
            if not _fits(height, vectors, shared, target):
                continue
            if exact and columns % (vectors * lanes):
                continue
            cost = _cost(height, vectors, shared, rows, columns, lanes)
            if best is None or (cost, -height * vectors) < (best[0], -best[1] * best[2]):
                best = (cost, height, vectors)
    assert best is not None
    return RegisterTile(best[1], best[2] * lanes, lanes)


def _fits(height: int, vectors: int, shared: bool, target: Target) -> bool:
    """Accumulators, one step's vectors, and room for scalars: a full file makes LLVM spill."""
    loaded = vectors if shared else 2
    return height * vectors + loaded + SPARE_REGISTERS <= target.vector_registers


def _cost(height: int, vectors: int, shared: bool, rows: int, columns: int, lanes: int) -> float:
    """Cycles for the whole problem per reduction step, in units of one multiply-add issue."""
    tiles = -(-rows // height) * -(-columns // (vectors * lanes))
    multiply = max(height * vectors, PARALLEL_CHAINS) / 2
    loads = (height + vectors if shared else height * vectors + vectors) / 2
    # Loads run beside the arithmetic; what they add when they are fewer is contention, a little.
    return tiles * (max(multiply, loads) + 0.15 * loads + 1.0)
