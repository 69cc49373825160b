from __future__ import annotations

from hypothesis import given

from tests.arith.strategies import World, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith import compare
from tilewright.arith.affine import to_affine
from tilewright.arith.division import Division
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr
from tilewright.arith.prove import Prover
from tilewright.arith.text import parse_expr, print_expr

EXTENTS = {
    name: parse_expr(text) for name, text in {"i": "H", "j": "W", "k": "8", "m": "4"}.items()
}
DIVISION = Division(Prover(EXTENTS))


@for_each(
    ("difference", "condition"),
    [
        ("8 - k", "true"),
        ("k - 6", "6 < k"),
        ("k - 8", "false"),
        ("N - i", "i < N"),
        ("N - i + 1", "i < N + 1"),
        ("N - i - 1", "i + 1 < N"),
        ("i - 3", "3 < i"),
        ("N * 8 - i * 8 - k", "i < N"),
        ("N * 8 - i * 8 - k - 1", "i * 8 + k + 1 < N * 8"),
        ("i * 4 - 6", "1 < i"),
        ("10 - i // 8", "i < 80"),
        ("i // 8 - 9", "79 < i"),
        ("N - i // W", "i < N * W"),
        ("i // 8 - j // 8", "j // 8 < i // 8"),
        ("i - i // 8 * 8 - 6", "6 < i % 8"),
    ],
)
def test_less(difference: str, condition: str) -> None:
    assert print_expr(compare.less(to_affine(parse_expr(difference)), DIVISION)) == condition


@for_each(
    ("difference", "condition"),
    [
        ("i - i", "true"),
        ("1", "false"),
        ("k - 8", "false"),
        ("8 - k", "false"),
        ("i - N", "N == i"),
        ("i - 3", "i == 3"),
        ("i * 2 - 5", "false"),
        ("i * 2 - 6", "i == 3"),
        ("i // 8 * 8 + i % 8 - i", "true"),
    ],
)
def test_equal(difference: str, condition: str) -> None:
    form = to_affine(parse_expr(difference))
    assert print_expr(compare.equal(form, DIVISION, truth=True)) == condition
    opposite = {"true": "false", "false": "true"}.get(condition, condition.replace("==", "!="))
    assert print_expr(compare.equal(form, DIVISION, truth=False)) == opposite


@given(index_exprs(3), worlds())
def test_comparisons_keep_their_truth(e: Expr, world: World) -> None:
    try:
        value = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    division = Division(Prover(world.extents))
    form = to_affine(e)
    assert evaluate(compare.less(form, division), world.env) == (value > 0)
    assert evaluate(compare.equal(form, division, truth=True), world.env) == (value == 0)
    assert evaluate(compare.equal(form, division, truth=False), world.env) == (value != 0)
