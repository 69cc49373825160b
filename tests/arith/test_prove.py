from __future__ import annotations

from hypothesis import given

from tests.arith.strategies import World, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.affine import number, to_affine
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, const
from tilewright.arith.prove import MAX_STEPS, Prover
from tilewright.arith.text import parse_expr
from tilewright.core.dtypes import I64

EXTENTS = {
    name: parse_expr(text)
    for name, text in {
        "i": "H", "j": "W", "k": "8", "b": "N // 8", "up": "(N + 7) // 8", "t": "k + 1",
    }.items()
}  # fmt: skip


def proved(text: str) -> bool:
    return Prover(EXTENTS).nonneg(to_affine(parse_expr(text, {"I": I64})))


@for_each(
    "text",
    [
        "0",
        "N",
        "i",
        "7 - k",
        "H - 1 - i",
        "H * W - 1 - i * W - j",
        "N - b * 8 - k - 1",
        "N + 7 - up * 8 - k",
        "N - N // 8 * 8",
        "N - N // W * W",
        "N // 8 - N // 16 * 2",
        "(N + 7) // 8 * 8 - N",
        "N - N % 8",
        "7 - N % 8",
        "i - i // 8",
        "i // W * W + W - 1 - i",
        "H - 1 - min(i, 5)",
        "max(i, k) - i",
        "min(i, k) + N",
        "H * 2 - max(i, H) - 1",
        "7 - t",
    ],
)
def test_proves(text: str) -> None:
    assert proved(text)


@for_each(
    "text",
    [
        "0 - 1",
        "N - 1",
        "6 - k",
        "H - 2 - i",
        "N - up * 8 - k - 1",
        "I[i]",
        "N - W",
        "i - 1",
        "0 - N",
    ],
)
def test_does_not_prove(text: str) -> None:
    assert not proved(text)


def test_a_variable_with_a_value_has_an_extent_of_at_least_one() -> None:
    assert proved("W * W + j - W")
    assert not proved("W * W - W * 2")
    assert proved("W - 1 + j")
    assert not proved("W - 1")
    assert proved("N + b - 8")
    assert not proved("N - 8")


@given(index_exprs(), worlds())
def test_what_is_proved_holds(e: Expr, world: World) -> None:
    form = to_affine(e)
    prover = Prover(world.extents)
    try:
        value = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    assert value >= 0 or not prover.nonneg(form)
    assert value < 0 or not prover.nonneg((-form).shift(-1))


def test_in_range() -> None:
    prover = Prover(EXTENTS)
    assert prover.in_range(to_affine(parse_expr("i * W + j")), to_affine(parse_expr("H * W")))
    assert prover.in_range(to_affine(parse_expr("k + 8")), number(16))
    assert not prover.in_range(to_affine(parse_expr("k + 9")), number(16))
    assert not prover.in_range(to_affine(parse_expr("i - 1")), to_affine(parse_expr("H")))


def test_divisors_are_natural_and_not_always_zero() -> None:
    prover = Prover({"z": const(1)})
    assert prover.is_divisor(to_affine(parse_expr("N * 4")))
    assert prover.is_divisor(number(3))
    assert not prover.is_divisor(number(0))
    assert not prover.is_divisor(to_affine(parse_expr("z")))
    assert not prover.is_divisor(to_affine(parse_expr("N - 4")))


def test_a_hopeless_proof_ends() -> None:
    tower = parse_expr("I[0]", {"I": I64})
    for n in range(MAX_STEPS):
        tower = parse_expr(f"min(x, max(y, i + {n}))") + tower * 2
    assert not Prover(EXTENTS).nonneg(to_affine(tower))
