"""Samplings: steps that draw a decision, recorded in the trace, for later steps to use.

    v0 = sample_tile("mm.i0", 3, 16) -> [?, 4, 8]
    v1 = sample_categorical([16, 64, 256]) -> 64

A sampling is a function `(func, rng, *args)` that gives the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.trace import Arg
from tilewright.schedule.tree import loop_spine, target_loop

# What one level of a tile of a loop with symbolic extent may be.
POWERS = (1, 2, 4, 8, 16, 32, 64)


def sample_tile(func: Func, rng: Random, loop: str, n: int, max_inner: int) -> Arg:
    """Factors for `split` of a loop into `n`, the first left open, the last at most `max_inner`.

    A constant extent is split into divisors, a symbolic one by powers of two.
    """
    target = target_loop(loop_spine(func, loop))
    if n < 1 or max_inner < 1:
        message = f"sample_tile of loop {loop} into {n} parts of at most {max_inner}"
        raise refuse(func, "sample-tile.count", message, target, help="use numbers of at least 1")
    extent = as_int(target.extent)
    factors: list[int] = []
    for level in range(n - 1):
        limit = max_inner if level == 0 else 1 << 30
        choices = [f for f in _choices(extent) if f <= limit]
        factor = rng.choice(choices or [1])
        factors.insert(0, factor)
        extent = None if extent is None else extent // factor
    return (None, *factors)


def _choices(extent: int | None) -> Sequence[int]:
    if extent is None:
        return POWERS
    small = [f for f in range(1, int(extent**0.5) + 1) if extent % f == 0]
    return sorted({*small, *(extent // f for f in small)})


def sample_categorical(func: Func, rng: Random, candidates: Sequence[Arg]) -> Arg:
    """One of the candidates."""
    if not candidates:
        raise refuse(func, "sample-categorical.empty", "there is nothing to choose from")
    return rng.choice(candidates)


SAMPLINGS: dict[str, Callable[..., Arg]] = {
    "sample_tile": sample_tile,
    "sample_categorical": sample_categorical,
}
