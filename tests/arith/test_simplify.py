from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arith.reference import meaning, same
from tests.arith.strategies import (
    BUFFERS,
    World,
    conditions,
    element_exprs,
    element_values,
    index_exprs,
    typed_exprs,
    worlds,
)
from tests.for_each import for_each
from tilewright.arith import simplify as module
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import FALSE, TRUE, Const, Expr, Var, ceildiv, const, minimum
from tilewright.arith.simplify import Simplifier, prove, prove_less, simplify
from tilewright.arith.text import parse_expr, print_expr
from tilewright.core.dtypes import F32, I64

EXTENTS = {
    name: parse_expr(text)
    for name, text in {
        "i": "H", "j": "W", "k": "8", "m": "4", "s": "6", "one": "1", "n": "N",
        "i.0": "N // 8", "i.1": "8", "up": "(N + 7) // 8",
    }.items()
}  # fmt: skip
ELEMENTS = {"A": F32, "I": I64}


def simplified(text: str) -> str:
    return print_expr(simplify(parse_expr(text, ELEMENTS), EXTENTS))


@for_each(
    ("before", "after"),
    [
        # sums
        ("k + i + k", "i + k * 2"),
        ("(i + 1) * W - W", "W * i"),
        ("0 - i", "i * (-1)"),
        ("3 - i", "3 - i"),
        ("one * 8 + k", "k"),
        # quotients and remainders
        ("(i * 8 + k) // 8", "i"),
        ("(i * 8 + k) % 8", "k"),
        ("(i * W + j) // W", "i"),
        ("(i * W + j) % W", "j"),
        ("(i * (W + 2) + j) // (W + 2)", "i"),
        ("(i * (W + 2) + j) % (W + 2)", "j"),
        ("(i * W * 4 + m * W + j) // (W * 4)", "i"),
        ("(i * W * 4 + m * W + j) // W", "i * 4 + m"),
        ("(i * W + j) // (W * 4)", "i // 4"),
        ("(i * W + j) % (W * 4)", "W * (i % 4) + j"),
        ("(s * 4 + m) // 8", "s // 2"),
        ("(s * 4 + m) % 8", "m + s % 2 * 4"),
        ("(i + 16) // 8", "i // 8 + 2"),
        ("(N - 1) // 8 + 1", "(N + 7) // 8"),
        ("i * 3 // 6", "i // 2"),
        ("i // (-8)", "i * (-1) // 8"),
        ("N % N + N // N", "1"),
        ("i // 4 // 2", "i // 8"),
        ("(i // 4 + 1) // 2", "(i + 4) // 8"),
        ("i % 64 % 8", "i % 8"),
        ("i % 64 // 8", "i // 8 % 8"),
        ("i // 0", "i // 0"),
        # quotient and remainder together
        ("i - i // 8 * 8", "i % 8"),
        ("i // 8 * 8 + i % 8", "i"),
        ("i // W * W + i % W", "i"),
        ("N - N % 8", "N // 8 * 8"),
        ("i % 64 // 8 * 8 + i % 8", "i % 64"),
        ("i // 64 * 64 + i // 8 % 8 * 8 + i % 8", "i"),
        ("(s * 4 + m) // 8 * 8 + (s * 4 + m) % 8", "m + s * 4"),
        # least and greatest
        ("min(k, 7)", "k"),
        ("max(0, min(i, H - 1))", "i"),
        ("min(N + 3, N)", "N"),
        ("min(k, min(i, min(k, 9)))", "min(i, k)"),
        # comparisons
        ("k < 8", "true"),
        ("8 <= k", "false"),
        ("k == 8", "false"),
        ("i + 1 <= H", "true"),
        ("i <= 3", "i < 4"),
        ("i * 8 + k < N * 8", "i < N"),
        ("i * 8 + k >= 24", "2 < i"),
        ("i // 8 < 4", "i < 32"),
        ("4 <= i // 8", "31 < i"),
        ("i * 2 == 5", "false"),
        ("i * 2 == j * 4 + 2", "i == j * 2 + 1"),
        ("up * 8 + k < N", "k + up * 8 < N"),
        ("(N - 1) // 8 + 1 == (N + 7) // 8", "true"),
        # logic
        ("!(i < 3)", "2 < i"),
        ("!(i == 3)", "i != 3"),
        ("i < 3 & (i < 5 & j < 2)", "i < 3 & j < 2"),
        ("i < 3 | i < 5", "i < 5"),
        ("i < 3 & !(i < 3)", "false"),
        ("0 <= i - 1 & i - 1 < H", "0 < i"),
        # choice, loads, elements
        ("select(k < 8, i, j)", "i"),
        ("select(!(A[0] < 1.0), i, j)", "select(A[0] < 1.0, j, i)"),
        ("A[(i * 8 + k) // 8 ? k < 8] * 1.0", "A[i]"),
        ("A[i] + 0.0", "A[i] + 0.0"),
        ("I[i] * W + 1 - W * I[i]", "1"),
        ("(I[i] * 2) // 2", "I[i] * 2 // 2"),
        ("sum(r in 8) A[(i * 8 + r) // 8, r // 8]", "sum(r in 8) A[i, 0]"),
        ("ramp(k * 1 + 0, 1, 4) * 1", "ramp(k, 1, 4)"),
    ],
)  # fmt: skip
def test_examples(before: str, after: str) -> None:
    assert simplified(before) == after


@for_each(
    "condition",
    [
        "i.0 * 8 + i.1 < N",
        "n < N",
        "N // 8 * 8 <= N",
        "N % 8 <= N",
        "up * 8 < N",
        "up * 8 + 7 < N + 7",
        "i * W + j < H * W",
        "(i * W + j) * 8 + k < H * W * 8",
        "i * W + j - k < H * W",
        "0 <= i & i < H",
        "i // 2 * 2 <= i",
        "i // 8 <= (H - 1) // 8",
        "i // 8 < (H + 7) // 8",
        "min(n, 5) < N",
        "max(i, 0) < H",
        "n < N | N < n",
        "W * j + j < W * W + W",
        "select(A[0] < 1.0, k, m) < 8",
        "0 < W | j < W",
    ],
)
def test_proves(condition: str) -> None:
    assert prove(parse_expr(condition, ELEMENTS), EXTENTS)


@for_each(
    "condition",
    [
        "up * 8 + k < N",
        "i < W",
        "0 < N",
        "k < 7",
        "I[i] * 2 // 2 == I[i]",
        "i.0 * 8 + i.1 + 1 < N",
        "N // 8 * 8 == N",
        "free * 2 < 3",
        "N <= N // 8 * 8",
        "i * j < H * W - 1",
    ],
)
def test_does_not_prove(condition: str) -> None:
    assert not prove(parse_expr(condition, ELEMENTS), EXTENTS)


def value(e: Expr, world: World) -> int | None:
    try:
        return evaluate(e, world.env)
    except ZeroDivisionError:
        return None


@given(index_exprs(), worlds())
def test_keeps_the_value(e: Expr, world: World) -> None:
    expected = value(e, world)
    if expected is not None:
        assert value(simplify(e, world.extents), world) == expected


@given(conditions(), worlds())
def test_keeps_the_truth(e: Expr, world: World) -> None:
    expected = value(e, world)
    if expected is not None:
        assert value(simplify(e, world.extents), world) == expected


@given(st.one_of(index_exprs(), conditions()), worlds())
def test_is_idempotent(e: Expr, world: World) -> None:
    once = simplify(e, world.extents)
    # A new simplifier has forgotten that this is a result.
    assert Simplifier(dict(world.extents)).once(once) is once


@given(typed_exprs())
def test_keeps_dtype_and_lanes(e: Expr) -> None:
    result = simplify(e, {})
    assert result.dtype == e.dtype
    assert result.lanes == e.lanes
    assert parse_expr(print_expr(result), BUFFERS) is result


@given(conditions(), worlds(), st.data())
def test_what_is_proved_is_true(e: Expr, world: World, data: st.DataObject) -> None:
    if prove(e, world.extents):
        for _ in range(5):
            other = data.draw(worlds())
            env = {**other.env, **{n: other.env[n] for n in ("N", "M")}}
            in_range = all(env[n] < evaluate(extent, env) for n, extent in world.extents.items())
            if in_range:
                assert value(e, World(world.extents, env)) in (None, True)


@given(element_exprs(), element_values())
def test_elements_keep_their_bits(e: Expr, env: dict[str, float]) -> None:
    assert same(meaning(simplify(e), env), meaning(e, env))


def test_trivial_expressions_are_returned_as_they_are() -> None:
    i = Var("i")
    assert simplify(i, {}) is i
    assert simplify(i, {"i": const(1)}) is const(0)
    assert simplify(const(3)) is const(3)
    assert simplify(TRUE) is TRUE
    assert simplify(i < i) is FALSE
    assert isinstance(simplify(i - i + 3), Const)


def test_an_extent_may_depend_on_an_outer_variable() -> None:
    extents = {"i": parse_expr("N"), "j": parse_expr("i + 1")}
    assert prove(parse_expr("j < N"), extents)
    assert not prove(parse_expr("j + 1 < N"), extents)


def test_the_memo_is_shared_by_extents(monkeypatch: pytest.MonkeyPatch) -> None:
    e = parse_expr("(i * 8 + k) // 8 + j")
    assert simplify(e, EXTENTS) is simplify(e, dict(EXTENTS))
    monkeypatch.setattr(module, "MAX_SIMPLIFIERS", 0)
    assert simplify(e, EXTENTS) is parse_expr("i + j")


def test_large_products_stay_products() -> None:
    total = parse_expr(" + ".join(f"x{n}" for n in range(20)))
    square = simplify(total * total)
    assert square is simplify(square)
    assert len(print_expr(square)) < 500


M, i, j = Var("M"), Var("i"), Var("j")


def test_prove_less() -> None:
    assert prove_less(i, M, {"i": M})
    assert not prove_less(i + 1, M, {"i": M})
    assert prove_less(i * 8 + j, M * 8, {"i": M, "j": const(8)})
    assert not prove_less(i * 8 + j, M, {"i": ceildiv(M, 8), "j": const(8)})


def test_prove_less_of_a_limit_that_depends_on_other_loops() -> None:
    left = minimum(4, ceildiv(M - j * 64, 16))
    extents = {"i": left, "k": const(16), "j": ceildiv(M, 64)}
    assert prove_less(i * 16 + Var("k"), left * 16, extents)
    assert not prove_less(i * 16 + Var("k") + 1, left * 16, extents)


def test_prove_less_where_rounded_sizes_cancel_as_a_whole() -> None:
    padded = ceildiv(M, 8) * 8
    assert prove_less(i, padded, {"i": padded})
    assert prove_less(i * 8 + j, padded, {"i": ceildiv(M, 8), "j": const(8)})
