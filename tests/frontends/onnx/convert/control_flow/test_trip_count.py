"""Numbers of steps from conditions, compared with loops that count."""

from __future__ import annotations

import itertools

from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import FALSE, TRUE, Expr, Var, const
from tilewright.frontends.onnx.convert.control_flow.trip_count import (
    if_begun,
    least,
    margins,
    steps_while,
)

STEP, N = Var("i"), Var("n")


def counted(after: Expr, begin: Expr | None, n: int) -> int:
    """How many steps a loop takes, one after another."""
    if begin is not None and not evaluate(begin, {"n": n}):
        return 0
    return next(i + 1 for i in itertools.count() if not evaluate(after, {"i": i, "n": n}))


CONDITIONS = {
    "less": (STEP + 1 < N, const(0) < N),
    "less or equal": (STEP + 1 <= N, const(0) <= N),
    "greater": (N > STEP + 1, None),
    "in steps of three": (STEP * 3 + 5 < N, const(2) < N),
    "tested one step late": (STEP < N, const(0) < N),
    "downwards": (N - STEP * 2 >= 0, None),
    "two at once": ((STEP + 1 < N) & (STEP < 4), const(0) < N),
}


@for_each("name", CONDITIONS)
def test_it_counts_like_the_loop(name: str) -> None:
    after, begin = CONDITIONS[name]
    begins = (margins(begin) or []) if begin is not None else []
    found = [steps_while(e, "i", begins) for e in margins(after) or ()]
    count = if_begun(least([e for e in found if e is not None]), begins)
    for n in (0, 1, 2, 3, 7, 12):
        assert evaluate(count, {"n": n}) == counted(after, begin, n), (str(count), n)


def test_a_size_is_the_count_itself() -> None:
    begins = margins(const(0) < N) or []
    (positive,) = margins(STEP + 1 < N) or []
    assert steps_while(positive, "i", begins) is N
    assert least([N, N + 1]) is N


def test_conditions_that_say_nothing_about_steps() -> None:
    assert margins(TRUE) == []
    assert margins(FALSE) == [const(0)]
    assert margins(STEP.ne(N)) is None
    assert steps_while(STEP - N, "i", ()) is None  # it grows
    assert steps_while(N - STEP * STEP, "i", ()) is None
