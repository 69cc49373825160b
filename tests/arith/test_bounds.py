from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.arith.strategies import LOOPS, SIZES, World, conditions, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.affine import to_affine
from tilewright.arith.bounds import (
    NATURAL,
    UNBOUNDED,
    Bounds,
    Interval,
    bound,
    loop_ranges,
    lower,
    upper,
)
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import F32, I32, I64, U8

RANGES = {"i": Interval(0, 3), "j": Interval(0, 7), "s": Interval(-5, 5)}
BUFFERS = {"A": F32, "I": I64, "Q": U8, "W": I32}


@for_each(
    ("text", "lo", "hi"),
    [
        ("i * 8 + j", 0, 31),
        ("i - j", -7, 3),
        ("s // 2", -3, 2),
        ("s % 4", 0, 3),
        ("j % 16", 0, 7),
        ("(j + 16) % 8", 0, 7),
        ("s * s", -25, 25),
        ("min(i, j)", 0, 3),
        ("max(i, 2)", 2, 3),
        ("-(s)", -5, 5),
        ("select(i < 4, i, j)", 0, 3),
        ("select(i < 3, i, j + 8)", 0, 15),
        ("n", None, None),
        ("n % 8", 0, 7),
        ("min(n, 4)", None, 4),
        ("I[i]", None, None),
        ("i64(Q[i])", 0, 255),
        ("i64(Q[i] + 1:u8)", 0, 255),
        ("i64(W[i]) * 2", -(2**32), 2**32 - 2),
        ("i64(i < 2)", 0, 1),
        ("i64(A[i])", None, None),
        ("i < 4", 1, 1),
        ("4 < i | j < 0", 0, 0),
        ("!(i < 4)", 0, 0),
        ("i == 9", 0, 0),
        ("A[i] < 1.0", 0, 1),
        ("i << 2", 0, 12),
        ("j >> 1", 0, 3),
        ("j & 3", 0, 3),
        ("ramp(i, 2, 4)", 0, 9),
        ("broadcast(i, 4)", 0, 3),
        ("bits.i32(A[i])", -(2**31), 2**31 - 1),
        ("!(i)", -4, -1),
        ("bool(i)", 0, 1),
    ],
)
def test_bound(text: str, lo: int | None, hi: int | None) -> None:
    assert bound(parse_expr(text, BUFFERS), RANGES) == Interval(lo, hi)


def test_other_names_take_the_default() -> None:
    assert bound(parse_expr("n + 1"), {}, NATURAL) == Interval(1, None)
    assert bound(parse_expr("n + 1"), {}) == UNBOUNDED
    assert bound(parse_expr("i64(n:i8)"), {}, NATURAL) == Interval(-128, 127)


@given(st.one_of(index_exprs(), conditions()), worlds(), st.data())
def test_bounds_are_sound(e: Expr, world: World, data: st.DataObject) -> None:
    widths = {name: data.draw(st.integers(0, 5)) for name in (*LOOPS, *SIZES)}
    ranges = {n: Interval(v - widths[n], v + 5 - widths[n]) for n, v in world.env.items()}
    try:
        value = int(evaluate(e, world.env))
    except ZeroDivisionError:
        return
    assert bound(e, ranges).contains(value)
    assert Bounds(loop_ranges(world.extents), NATURAL).of(e).contains(value)
    if e.dtype == I64:
        assert Bounds(ranges).of_form(to_affine(e)).contains(value)


EXTENTS = {
    name: parse_expr(text)
    for name, text in {"i": "H", "j": "W", "k": "8", "b": "N // 8", "t": "k + 1"}.items()
}


@for_each(
    ("text", "least", "greatest"),
    [
        ("i * W + j", "0", "H * W - 1"),
        ("i * W - j", "1 - W", "H * W - W"),
        ("b * 8 + k", "0", "N // 8 * 8 - 1"),
        ("(b * 8 + k) // 4", "0", "(N // 8 * 8 - 1) // 4"),
        ("i % 8", "0", "7"),
        ("k - i // 2", "(H - 1) // 2 * (-1)", "7"),
        ("min(i, k)", "0", "min(H - 1, 7)"),
        ("max(i, k)", "0", "max(H - 1, 7)"),
        ("select(i < 3, i, k + 8)", "0", "max(H - 1, 15)"),
        ("i * k", "0", "H * 7 - 7"),
        ("i * (W - 1) + j", "0", "H * W - H"),
        ("N * 3", "N * 3", "N * 3"),
        ("t + 1", "1", "8"),
    ],
)
def test_symbolic_bounds(text: str, least: str, greatest: str) -> None:
    e = parse_expr(text)
    low, high = lower(e, EXTENTS), upper(e, EXTENTS)
    assert low is not None
    assert high is not None
    assert (print_expr(low), print_expr(high)) == (least, greatest)


@for_each("text", ["I[i]", "i // (N - 8)", "i % (k - 4)", "i // k"])
def test_no_symbolic_bound(text: str) -> None:
    assert upper(parse_expr(text, BUFFERS), EXTENTS) is None


@given(index_exprs(), worlds())
def test_symbolic_bounds_are_sound(e: Expr, world: World) -> None:
    low, high = lower(e, world.extents), upper(e, world.extents)
    try:
        value = evaluate(e, world.env)
        assert low is None or evaluate(low, world.env) <= value
        assert high is None or value <= evaluate(high, world.env)
    except ZeroDivisionError:
        return
    assert all(x is None or free_vars(x).isdisjoint(LOOPS) for x in (low, high))
