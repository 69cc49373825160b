from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.arith.strategies import LOOPS, World, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr
from tilewright.arith.symbolic_bounds import most
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.walk import free_vars


@for_each(
    ("text", "found"),
    [
        ("n * 4 + 3", "N * 4 + 3"),
        ("N - n", "N"),
        ("(n + 1) // 2 * 2", "(N + 1) // 2 * 2"),
        ("n % 4", "3"),
        ("min(n, N - n)", "N"),
        ("n * (N - n)", "N * N"),
        ("8 // n", "8"),
        ("8 / n", "8"),
        ("n * (M // n)", "M"),
        ("n * (M // n) * 4", "M * 4"),
        ("M % n", "max(N - 1, 0)"),
        ("rem(M, n)", "M"),
        ("(N - n) // 2 * M", "M * (N // 2)"),
        ("select(n < 3, n, M)", "max(M, N)"),
        ("M + 1", "M + 1"),
        ("M // (n - N)", None),
    ],
)
def test_most(text: str, found: str | None) -> None:
    N = parse_expr("N")
    result = most(parse_expr(text), {"n": N})
    assert (None if result is None else print_expr(result)) == found


@given(worlds(), index_exprs(), st.sampled_from(LOOPS))
def test_nothing_is_more(world: World, e: Expr, name: str) -> None:
    bound = most(e, {name: world.extents[name] - 1})
    if bound is None:
        return
    assert name not in free_vars(bound)
    try:
        value, limit = evaluate(e, world.env), evaluate(bound, world.env)
    except ZeroDivisionError:
        return
    assert value <= limit
