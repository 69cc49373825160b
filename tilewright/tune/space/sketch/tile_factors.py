"""Sizes of tiles, one level after another from the innermost: divisors of what is left."""

from __future__ import annotations

from functools import partial

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Iter
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    divisors,
    nearest_divisor,
)
from tilewright.schedule.schedule import Schedule

# The most iterations of an inner level.
MAX_INNER_EXTENT = 64
# The sizes of one level of a loop with symbolic extent.
POWERS = (1, 2, 4, 8, 16, 32, 64)


def choose_factors(
    sch: Schedule, name: str, axis: Iter, wanted: tuple[int, ...], lanes: int = 0
) -> list[int | None]:
    """How to split an axis into one part more than there are in `wanted`, the first left open.

    `wanted` are sizes to come near to by default, outermost first. With `lanes`, the innermost part
    may be whole vectors though they do not divide the axis.
    """
    left = as_int(axis.extent)
    factors: list[int] = []
    for level in reversed(range(len(wanted))):
        vectors = lanes if level == len(wanted) - 1 else 0
        options = partial(_options, left, vectors)
        default = _default(left, wanted[level], vectors)
        factor = sch.choose(f"{name}.{axis.name}.{level + 1}", default, options)
        factors.insert(0, factor)
        left = None if left is None else -(-left // factor)
    return [None, *factors]


def _options(left: int | None, lanes: int) -> list[int]:
    if left is None:
        return [n for n in POWERS if not lanes or n % lanes == 0 or n == 1]
    vectors = [lanes * n for n in (1, 2, 3, 4) if lanes > 1 and lanes * n <= left]
    return sorted({*vectors, *(n for n in divisors(left) if n <= MAX_INNER_EXTENT)})


def _default(left: int | None, wanted: int, lanes: int) -> int:
    if left is None or (lanes and left >= wanted):
        return wanted
    return nearest_divisor(left, min(wanted, left))
