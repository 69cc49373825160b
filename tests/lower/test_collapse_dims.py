from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.lower.random_programs import random_program
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Cast, Expr, Reduce, Var, as_int, const, maximum, select
from tilewright.core.dtypes import F32
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.nodes import Program
from tilewright.ir.tensor.text import print_program
from tilewright.ir.tensor.verify import verify_program
from tilewright.lower.collapse_dims import collapse, collapse_strided


def check(before: Program, sizes: dict[str, int]) -> Program:
    """The collapsed program gives the same bytes from the same bytes."""
    after = collapse(before)
    verify_program(after)
    rng = np.random.default_rng(0)
    given, flat = {}, {}
    for old, new in zip(before.inputs, after.inputs, strict=True):
        array = rng.standard_normal([evaluate(d, sizes) for d in old.shape]).astype("f4")
        given[old.name] = array
        flat[new.name] = array.reshape([evaluate(d, sizes) for d in new.shape])
    expected, found = run_program(before, given, sizes), run_program(after, flat, sizes)
    for name in before.outputs:
        np.testing.assert_allclose(
            found[name].ravel(), expected[name].ravel(), rtol=1e-5, atol=1e-6
        )
    return after


def shapes(program: Program) -> dict[str, list[str]]:
    return {s.name: [str(d) for d in s.shape] for s in program.stages}


@for_each("seed", range(60))
def test_random_programs_keep_their_meaning(seed: int) -> None:
    program = random_program(seed)
    after = check(program, {"N": 4})
    check(program, {"N": 1})
    for s in after.stages:
        assert all(as_int(d) != 1 for d in s.shape)


def test_elementwise_becomes_one_dimension() -> None:
    b = Builder("f")
    x = b.input("x", F32, (1, 12, Var("N"), 5))
    y = b.compute("y", x.shape, lambda *i: maximum(x.at(*i), 0.0))
    assert shapes(check(b.program(y), {"N": 3})) == {"y": ["N * 60"]}


def test_a_broadcast_keeps_its_dimension_apart() -> None:
    b = Builder("f")
    x, bias = b.input("x", F32, (4, 3, 5)), b.input("bias", F32, (5,))
    y = b.compute("y", x.shape, lambda i, j, k: x[i, j, k] + bias[k])
    assert shapes(check(b.program(y), {})) == {"y": ["12", "5"]}


def test_the_pixels_of_a_convolution_become_one_dimension() -> None:
    b = Builder("f")
    x, w = b.input("x", F32, (2, 6, 7, 3)), b.input("w", F32, (3, 3, 3, 4))

    def term(n: Expr, y: Expr, z: Expr, f: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        return x[n, y + i, z + j, c] * w[i, j, c, f]

    y = b.compute(
        "y",
        (2, 4, 5, 4),
        lambda n, y, z, f: b.sum((3, 3, 3), lambda i, j, c: term(n, y, z, f, c, i, j)),
    )
    assert shapes(check(b.program(y), {})) == {"y": ["40", "4"]}


def test_a_transpose_stays() -> None:
    b = Builder("f")
    x = b.input("x", F32, (3, 4, 5))
    y = b.compute("y", (5, 3, 4), lambda k, i, j: x[i, j, k])
    assert shapes(check(b.program(y), {})) == {"y": ["5", "12"]}


def test_a_reduction_over_one_element_disappears() -> None:
    b = Builder("f")
    x = b.input("x", F32, (3, 1))
    y = b.compute("y", (3,), lambda i: b.sum((1,), lambda k: x[i, k]))
    after = check(b.program(y), {})
    assert not after.stages[0].is_reduction


def test_what_a_product_packs_has_joined_rows() -> None:
    b = Builder("convolution")
    x, w = b.input("x", F32, (6, 7, 4)), b.input("w", F32, (12, 5))
    rows = b.compute("rows", (4, 7, 12), lambda i, j, k: x[i + k // 4, j, k % 4])
    y = b.compute("y", (4, 7, 5), lambda i, j, o: b.sum((12,), lambda k: rows[i, j, k] * w[k, o]))
    assert shapes(check(b.program(y), {})) == {"rows": ["28", "12"], "y": ["28", "5"]}
    # Somebody else reads them one by one.
    b = Builder("sum")
    x = b.input("x", F32, (6, 7, 4))
    rows = b.compute("rows", (4, 7, 12), lambda i, j, k: x[i + k // 4, j, k % 4])
    y = b.compute("y", (4, 7), lambda i, j: b.sum((12,), lambda k: rows[i, j, k]))
    assert shapes(check(b.program(y), {}))["rows"] == ["4", "7", "12"]


def test_dimensions_with_gaps_between_them_stay_apart() -> None:
    b = Builder("f")
    x = b.input("x", F32, (const(2), const(3), const(4), const(1)))
    y = b.compute("y", x.shape, lambda *i: x.at(*i) * 2.0)
    program = b.program(y)
    (name,) = program.outputs
    wide = {
        name: (const(2), const(3), const(9), const(1)),
        "x": (const(2), const(7), const(4), const(1)),
    }
    after, parents = collapse_strided(program, wide)
    assert shapes(after) == {name: ["2", "3", "4"]}
    assert {n: [as_int(d) for d in shape] for n, shape in parents.items()} == {
        name: [2, 3, 9],
        "x": [2, 7, 4],
    }
    after, parents = collapse_strided(program, {name: wide[name]})
    assert shapes(after) == {name: ["6", "4"]}
    assert [as_int(d) for d in parents[name]] == [6, 9]


def test_axes_that_are_reduced_over_become_one() -> None:
    """What is left of each channel's picture without its sum."""
    b = Builder("f")
    x = b.input("x", F32, (3, 4, 5))
    total = b.compute("total", (3,), lambda c: b.sum((4, 5), lambda h, w: x[c, h, w]))
    y = b.compute("y", (3, 4, 5), lambda c, h, w: x[c, h, w] - total[c])
    after = check(b.program(y), {})
    assert shapes(after) == {"total": ["3"], "y": ["3", "20"]}
    assert _summed(after) == ["20"]


def test_axes_that_terms_count_stay_apart() -> None:
    """A joined axis would have to be divided in each step."""
    b = Builder("f")
    x = b.input("x", F32, (3, 4, 5))
    y = b.compute("y", (3,), lambda c: b.sum((4, 5), lambda h, w: x[c, h, w] * Cast(F32, h)))
    assert _summed(check(b.program(y), {})) == ["4", "5"]


def _summed(program: Program) -> list[str]:
    """The extents that the first stage reduces over."""
    body = program.stages[0].body
    assert isinstance(body, Reduce)
    return [str(extent) for _, extent in body.axes]


def _concat(tail: int, joins_last: bool = False) -> Program:
    b = Builder("f")
    p, q = b.input("p", F32, (6, 4, tail)), b.input("q", F32, (6, 5, tail))

    def chosen(i: Expr, j: Expr, k: Expr) -> Expr:
        first = (j < 4) & (k < tail - 1) if joins_last else j < 4
        return select(first, p.at(i, j, k, when=first), q.at(i, j - 4, k, when=const(3) < j))

    return b.program(b.compute("y", (6, 9, tail), chosen))


def test_rows_of_a_concatenation_become_one_dimension() -> None:
    after = check(_concat(3), {})
    assert shapes(after) == {"y": ["6", "27"]}
    assert "//" not in print_program(after)


def test_a_condition_on_the_inner_axis_keeps_it_apart() -> None:
    assert shapes(collapse(_concat(3, joins_last=True))) == {"y": ["6", "9", "3"]}
