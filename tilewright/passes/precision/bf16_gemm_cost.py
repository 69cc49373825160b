"""How long a product takes in f32 and on a unit that multiplies tiles of bf16, in cycles of a core.

Both are counted as they are scheduled: whole tiles, though rows or columns fill them in part, and
weights that are read again by every block of rows. In bf16 the left operand must be converted, and
packed where it is made of windows.
"""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.target.cpu import CpuTarget

# Multiply-adds a cycle in vectors, and how much of that a matrix product in f32 reaches.
UNITS, EFFICIENCY = 2, 0.87
# Bytes a cycle of weights: from memory, and from the second cache.
MEMORY_BYTES, CACHE_BYTES = 8, 32
# What must be gained: the model is not more exact than this.
LEAST_GAIN = 1.1


@node
class TileUnit:
    """A unit for tiles: the rows, columns and depth of a block, what a step takes, and its start.

    `step` is what a block's step takes with operands from the second cache; `start` is clearing
    and storing the sums of a block. `convert` and `pack` are cycles an element.
    """

    rows: int
    columns: int
    depth: int
    step: int
    start: int
    convert: float
    pack: float
    call: int


AMX = TileUnit(
    rows=32, columns=32, depth=32, step=128, start=250, convert=0.25, pack=0.25, call=1000
)
"""Two by two tiles of 16 x 16 x 32; a call sets the unit up on each thread and puts it back."""


@node
class ProductShape:
    """A product in numbers; `streams` if its weights come from memory each time."""

    rows: int
    columns: int
    depth: int
    streams: bool
    windows: bool = False


def is_profitable(shape: ProductShape, target: CpuTarget, unit: TileUnit = AMX) -> bool:
    """Whether the product is faster on the unit than in vectors of f32."""
    return unit_cycles(shape, unit) * LEAST_GAIN < vector_cycles(shape, target)


def vector_cycles(shape: ProductShape, target: CpuTarget) -> float:
    """The product in vectors of f32: columns side by side, or along the depth if there are few."""
    lanes = target.lanes(32)
    whole = min(_up(shape.columns, lanes) * shape.depth, _up(shape.depth, lanes) * shape.columns)
    products = shape.rows * whole / (lanes * UNITS * EFFICIENCY)
    return max(products, _weight_cycles(shape, 4))


def unit_cycles(shape: ProductShape, unit: TileUnit) -> float:
    """The product on the unit, its left operand converted first."""
    height = unit.rows // 2 if shape.rows <= unit.rows // 2 else unit.rows
    blocks = -(-shape.rows // height) * -(-shape.columns // unit.columns)
    steps = -(-shape.depth // unit.depth)
    sums = blocks * (steps * unit.step * height / unit.rows + unit.start)
    each = unit.convert + (unit.pack if shape.windows else 0)
    left = shape.rows * shape.depth * each
    return unit.call + left + max(sums, _weight_cycles(shape, 2))


def _weight_cycles(shape: ProductShape, size: int) -> float:
    """Reading the weights once."""
    rate = MEMORY_BYTES if shape.streams else CACHE_BYTES
    return shape.columns * shape.depth * size / rate


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
