"""Interpolation between elements: which of them a position takes along an axis, and their weights.

Each axis gives its taps on its own; a sample in several dimensions is the sum over all combinations
of taps, one axis after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import TRUE, Expr, as_int, cast, const, select
from tilewright.core.dtypes import DType
from tilewright.core.node import node
from tilewright.ir.tensor.nodes import Tensor

# How many elements a sample takes along an axis.
MODES = {"nearest": 1, "linear": 2, "cubic": 4}


@node
class Tap:
    """An element that takes part, with its weight; one that is not `inside` counts as zero.

    Even so its index is one of an element, unless there are none.
    """

    index: Expr
    weight: Expr
    inside: Expr = TRUE


def whole_tap(index: Expr, real: DType) -> list[Tap]:
    """The element at `index` and nothing else."""
    return [Tap(index, const(1, real))]


def linear_taps(floor: Expr, part: Expr) -> list[Tap]:
    """The elements at `floor` and behind it, weighted by nearness."""
    return [Tap(floor, const(1, part.dtype) - part), Tap(floor + 1, part)]


def cubic_taps(floor: Expr, part: Expr, coefficient: float) -> list[Tap]:
    """Four elements weighted by Keys' cubic convolution.

    Its polynomials as products, since as sums of powers small weights would be left over from
    larger numbers that cancel.
    """
    a, one = const(coefficient, part.dtype), const(1, part.dtype)
    steep, rest = const(coefficient + 2, part.dtype), one - part

    def near(t: Expr, left: Expr) -> Expr:  # at a distance of t, 1 - left
        return left * (one + t - steep * t * t)

    def far(t: Expr, left: Expr) -> Expr:  # at a distance of 1 + t
        return a * t * left * left

    weights = [far(part, rest), near(part, rest), near(rest, part), far(rest, part)]
    return [Tap(floor + (k - 1), w) for k, w in enumerate(weights)]


def _element(x: Tensor, index: Sequence[Expr], inside: Expr) -> Expr:
    """An element, or zero; it is read in any case where there surely is one, which is faster."""
    if inside is TRUE:
        return x.at(*index)
    if all(as_int(size) for size in x.shape):
        return select(inside, x.at(*index), const(0, x.dtype))
    return x.at(*index, when=inside)


def weighted(
    x: Tensor,
    choices: Sequence[Sequence[Tap]],
    real: DType,
    index: tuple[Expr, ...] = (),
    inside: Expr = TRUE,
) -> Expr:
    """The sum over all combinations of taps, in `real`; a single element is as it is."""
    if len(index) == len(x.shape):
        element = _element(x, index, inside)
        return element if all(len(taps) == 1 for taps in choices) else cast(real, element)
    taps = choices[len(index)]
    inner = [weighted(x, choices, real, (*index, t.index), inside & t.inside) for t in taps]
    if len(taps) == 1:
        return inner[0]
    total = inner[0] * taps[0].weight
    for value, tap in zip(inner[1:], taps[1:], strict=True):
        total = total + value * tap.weight
    return total
