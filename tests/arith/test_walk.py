from __future__ import annotations

from hypothesis import given

from tests.arith.strategies import BUFFERS, World, index_exprs, typed_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Binary, Call, Const, Expr, Load, Select, Var, const
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.walk import (
    contains,
    free_vars,
    loads,
    map_children,
    rewrite,
    subexpressions,
    substitute,
)
from tilewright.core.dtypes import F32

ELEMENTS = {"A": F32, "B": F32}


def parse(text: str) -> Expr:
    return parse_expr(text, ELEMENTS)


@given(typed_exprs())
def test_mapping_children_to_themselves_keeps_the_type(e: Expr) -> None:
    same = map_children(e, lambda child: child)
    assert same.dtype == e.dtype
    assert same.lanes == e.lanes


def test_rewrite_goes_from_leaves_to_root() -> None:
    seen: list[str] = []

    def note(e: Expr) -> Expr | None:
        seen.append(print_expr(e))
        return const(5) if e is Var("i") else None

    assert rewrite(parse("i * 8 + j"), note) is parse("40 + j")
    assert seen == ["i", "8", "40", "j", "40 + j"]


def test_rewrite_drops_a_mask_that_always_holds() -> None:
    rewritten = rewrite(parse("A[i ? i < 8]"), lambda e: const(0) if e is Var("i") else None)
    assert rewritten is parse("A[0]")


@for_each(
    ("before", "after"),
    [
        ("i * 8 + j", "(n + 1) * 8 + j"),
        ("A[i, j ? i < 3]", "A[n + 1, j ? n + 1 < 3]"),
        ("sum(k in i) A[i, k]", "sum(k in n + 1) A[n + 1, k]"),
        ("sum(i in 8) A[i]", "sum(i in 8) A[i]"),
        ("sum(i in i) A[i]", "sum(i in n + 1) A[i]"),
        ("ramp(i, 1, 4)", "ramp(n + 1, 1, 4)"),
    ],
)
def test_substitute(before: str, after: str) -> None:
    assert substitute(parse(before), {"i": parse("n + 1")}) is parse(after)


def test_substitute_leaves_the_rest_as_it_is() -> None:
    e = parse("j + 0")
    assert substitute(e, {"i": const(1)}) is e
    assert substitute(e, {}) is e


@given(index_exprs(3), worlds())
def test_substituting_values_is_evaluation(e: Expr, world: World) -> None:
    try:
        expected = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    result = substitute(e, {name: const(value) for name, value in world.env.items()})
    assert evaluate(result, {}) == expected
    assert not free_vars(result)


@for_each(
    ("text", "names"),
    [
        ("3", set()),
        ("i * N + j", {"i", "j", "N"}),
        ("A[i ? m < 3]", {"i", "m"}),
        ("sum(k in K) A[i, k]", {"i", "K"}),
        ("(sum(k in K) A[k]) + f32(k)", {"k", "K"}),
        ("sum(k in k) A[k]", {"k"}),
    ],
)
def test_free_vars(text: str, names: set[str]) -> None:
    assert free_vars(parse(text)) == names


def test_subexpressions_are_distinct_and_parents_come_first() -> None:
    e = parse("(i + 1) * (i + 1)")
    found = list(subexpressions(e))
    assert found[0] is e
    assert len(found) == len(set(found)) == 4


def test_subexpressions_of_shared_parts_take_no_exponential_time() -> None:
    e: Expr = Var("x", F32)
    for _ in range(100):
        e = e * e
    assert len(list(subexpressions(e))) == 101
    assert free_vars(e) == {"x"}


@given(typed_exprs())
def test_contained_classes_are_those_of_the_subexpressions(e: Expr) -> None:
    classes = {type(x) for x in subexpressions(e)}
    for kind in (Binary, Call, Const, Load, Select, Var):
        assert contains(e, kind) == (kind in classes)


def test_loads() -> None:
    e = parse("A[i] * B[i] + A[i] + (sum(k in 8) A[k])")
    assert {print_expr(x) for x in loads(e)} == {"A[i]", "B[i]", "A[k]"}
    assert all(isinstance(x, Load) for x in loads(e))


@given(typed_exprs())
def test_every_class_can_be_walked(e: Expr) -> None:
    assert e in set(subexpressions(e))
    assert all(x.buffer in BUFFERS for x in loads(e))
    assert rewrite(e, lambda x: x if isinstance(x, Const) else None).dtype == e.dtype
