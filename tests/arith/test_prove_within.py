"""What is proved of an index within loops and under conditions holds, checked point by point."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.prove_within import ProveWithin
from tilewright.arith.text import parse_expr

EXTENTS = {
    name: parse_expr(extent)
    for name, extent in {"i": "(N + 3) // 4", "j": "4", "k": "(N + 3) // 4 * 3"}.items()
}
FACTS = [parse_expr("i * 4 + j < N"), parse_expr("!(k < 1)")]


def points() -> Iterator[dict[str, int]]:
    """Every point of the loops where the facts hold, for small sizes."""
    for size in range(12):
        ends = [range(evaluate(extent, {"N": size})) for extent in EXTENTS.values()]
        for values in product(*ends):
            point = {"N": size, **dict(zip(EXTENTS, values, strict=True))}
            if all(evaluate(fact, point) for fact in FACTS):
                yield point


@for_each(
    "text",
    [
        "N - 1 - i * 4 - j",  # the condition itself
        "N - 1 - i * 4",
        "N * 2 - 2 - i * 8 - j * 2",  # twice the condition, which isl finds
        "k - 1",
        "2 - k // ((N + 3) // 4)",  # by the number of values of a quotient
        "11 - k // ((N + 3) // 4) * 4 - j",
        "(N + 3) // 4 - 1 - k % ((N + 3) // 4)",
        "min(i, N - 1)",
        "N - 1 - min(i, j + N)",
    ],
)
def test_what_holds_is_proved(text: str) -> None:
    e = parse_expr(text)
    assert all(evaluate(e, point) >= 0 for point in points())
    assert ProveWithin(EXTENTS, FACTS).nonneg(e)


@for_each(
    "text", ["N - 2 - i * 4 - j", "k - 2", "1 - k // ((N + 3) // 4)", "N - 1 - k", "min(i, N - 2)"]
)
def test_what_does_not_hold_is_not_proved(text: str) -> None:
    e = parse_expr(text)
    assert any(evaluate(e, point) < 0 for point in points())
    assert not ProveWithin(EXTENTS, FACTS).nonneg(e)


def test_a_loop_that_runs_has_no_size_of_zero() -> None:
    within = ProveWithin({"i": parse_expr("A * B * ((N + 5) // 6)")})
    for text in ("N - 1", "A - 1", "min(B - 1, i)"):
        assert within.nonneg(parse_expr(text))
    assert not within.nonneg(parse_expr("N - 2"))
    assert not ProveWithin({}).nonneg(parse_expr("N - 1"))
