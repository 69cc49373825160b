"""The cost of a GEMM in f32 and on a bf16 matrix unit, in cycles of a core.

Both are counted as scheduled: whole tiles, also where rows or columns fill them in part, and
weights that every block of rows reads again. In bf16 the left operand is converted, and packed by
im2col where it consists of windows.
"""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.target.calibration.cpu import CpuCosts
from tilewright.target.cpu import CpuTarget

# What must be gained: the model is not more exact than this.
MIN_GAIN = 1.1


@node
class ProductShape:
    """A product in numbers; `streams` if its weights come from memory each time."""

    rows: int
    columns: int
    depth: int
    streams: bool
    windows: bool = False


def is_profitable(shape: ProductShape, target: CpuTarget) -> bool:
    """Whether the product is faster on the unit than in vectors of f32."""
    return unit_cycles(shape, target.costs) * MIN_GAIN < vector_cycles(shape, target)


def vector_cycles(shape: ProductShape, target: CpuTarget) -> float:
    """The product in vectors of f32: columns side by side, or along the depth if there are few."""
    lanes, costs = target.lanes(32), target.costs
    whole = min(_up(shape.columns, lanes) * shape.depth, _up(shape.depth, lanes) * shape.columns)
    products = shape.rows * whole / (lanes * costs.fma_units * costs.gemm_efficiency)
    return max(products, _weight_cycles(shape, 4, costs))


def unit_cycles(shape: ProductShape, costs: CpuCosts) -> float:
    """The product on the unit, its left operand converted first."""
    unit = costs.amx
    height = unit.rows // 2 if shape.rows <= unit.rows // 2 else unit.rows
    blocks = -(-shape.rows // height) * -(-shape.columns // unit.columns)
    steps = -(-shape.depth // unit.depth)
    sums = blocks * (steps * unit.step * height / unit.rows + unit.start)
    each = unit.convert + (unit.pack if shape.windows else 0)
    left = shape.rows * shape.depth * each
    return unit.call + left + max(sums, _weight_cycles(shape, 2, costs))


def _weight_cycles(shape: ProductShape, size: int, costs: CpuCosts) -> float:
    """Reading the weights once."""
    rate = costs.memory_bytes_per_cycle if shape.streams else costs.l2_bytes_per_cycle
    return shape.columns * shape.depth * size / rate


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
