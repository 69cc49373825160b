"""Loops: their types, their text, and what they mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.differential.native import check_native, compare
from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BOOL, F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.control.loop import LoopAttrs, local_sizes
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.typecheck import check_types

T, N, STEP = Var("T"), Var("N"), Var("i")


def row_at(g: GraphBuilder, x: str, at: Expr) -> str:
    """Row `at` of a matrix."""
    n = g.type(x).shape[1]
    bounds = {"starts": (at, const(0)), "stops": (at + 1, n), "steps": (1, 1), "inside": True}
    cut = g.add("slice", x, attrs=make_attrs("slice", bounds))
    return g.add("reshape", cut, attrs=make_attrs("reshape", {"shape": (n,)}))


def recurrence() -> Graph:
    """h becomes tanh(h * w + x[i]); a row is the negative of it, another one the same again."""
    g = GraphBuilder("body")
    h, x = g.input("h", tensor(F32, N)), g.input("x", tensor(F32, T, N))
    w = g.input("w", tensor(F32, N))
    after = g.add("tanh", g.add("add", g.add("mul", h, w), row_at(g, x, STEP)))
    return g.graph(after, g.add("neg", after), after)


def recurrent(attrs: LoopAttrs) -> Graph:
    g = GraphBuilder("f")
    h, x = g.input("h", tensor(F32, N)), g.input("x", tensor(F32, T, N))
    w = g.add("sin", g.input("w", tensor(F32, N)))
    names = ["last", "ys", "zs"]
    found = g.add_control("loop", ["", g.add("exp", h), x, w], [recurrence()], attrs, names)
    return g.graph(*found, g.add("exp", found[0]))


def inputs(steps: int, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps + n)
    sizes = {"h": (n,), "x": (steps, n), "w": (n,)}
    return {name: rng.normal(size=s).astype(np.float32) for name, s in sizes.items()}


def test_the_meaning_of_a_loop() -> None:
    given = inputs(4, 3)
    found = run_graph(recurrent(LoopAttrs("i", T, 1)), given)
    h, rows = np.exp(given["h"]), []
    for x in given["x"]:
        h = np.tanh(h * np.sin(given["w"]) + x)
        rows.append(-h)
    np.testing.assert_allclose(found["last"], h, rtol=1e-5)
    np.testing.assert_allclose(found["ys"], rows, rtol=1e-5)


@pytest.mark.parametrize("backward", [(), (0,), (0, 1)])
def test_native_loops_of_any_length(backward: tuple[int, ...]) -> None:
    graph = recurrent(LoopAttrs("i", T, 1, backward=backward))
    model = check_native(graph, inputs(7, 33))
    for steps, n in ((0, 3), (1, 5), (2, 4), (3, 1), (6, 0)):
        compare(graph, model, inputs(steps, n))


def counting(conditional: bool = True) -> Graph:
    """Doubles two values that change places, while the first is below a limit."""
    g = GraphBuilder("body")
    a, b = g.input("a", tensor(F32)), g.input("b", tensor(F32))
    below = g.input("below", tensor(F32))
    two = g.constant(np.float32(2))
    twice = g.add("mul", a, two)
    going = (g.add("less", twice, below),) if conditional else ()
    return g.graph(*going, b, twice, twice)


def conditional(count: Expr, begin: bool = True) -> Graph:
    g = GraphBuilder("f")
    names = [g.input(name, tensor(F32)) for name in ("a", "b", "below")]
    start = g.input("start", tensor(BOOL)) if begin else ""
    g.input("x", tensor(F32, T))
    attrs = LoopAttrs("i", count, 2, True, "steps")
    found = g.add_control("loop", [start, *names], [counting()], attrs, ["c", "d", "rows"])
    return g.graph(*found, g.add("neg", found[2]))


def test_conditions_end_a_loop_and_say_how_many_rows_there_are() -> None:
    graph = conditional(T)
    assert graph.types["rows"] == tensor(F32, Var("steps"))
    model = None
    for start, below, most, steps in (
        (True, 20, 9, 6),
        (True, 20, 3, 3),
        (True, 0, 9, 1),
        (False, 20, 9, 0),
        (True, 20, 0, 0),
    ):
        scalars = {"a": 1, "b": 3, "below": below}
        given = {k: np.array(v, np.float32) for k, v in scalars.items()}
        given |= {"start": np.array(start), "x": np.zeros(most, np.float32)}
        assert run_graph(graph, given)["rows"].shape == (steps,)
        model = model or check_native(graph, given)
        compare(graph, model, given)


def nested() -> Graph:
    """A loop in a loop: rows of sums over i * j, in which both counters occur."""
    inner = GraphBuilder("inner")
    s = inner.input("s", tensor(I64))
    product = inner.add("dims", attrs=DimsAttrs((STEP * Var("j") + 1,), ()))
    inner_body = inner.graph(inner.add("add", s, product))
    g = GraphBuilder("outer")
    t = g.input("t", tensor(I64))
    (found,) = g.add_control("loop", ["", t], [inner_body], LoopAttrs("j", STEP + 2, 1))
    outer_body = g.graph(found, found)
    top = GraphBuilder("f")
    top.input("x", tensor(F32, T))
    first = top.constant(np.array(5))
    rows = top.add_control("loop", ["", first], [outer_body], LoopAttrs("i", T, 1))
    return top.graph(*rows)


def test_loops_inside_loops() -> None:
    graph = nested()
    x = np.zeros(4, np.float32)
    total, rows = 5, []
    for i in range(4):
        total += sum(i * j + 1 for j in range(i + 2))
        rows.append(total)
    found = run_graph(graph, {"x": x})
    assert [y.tolist() for y in found.values()] == [total, rows]
    compare(graph, check_native(graph, {"x": x}), {"x": np.zeros(0, np.float32)})


def test_text_and_verifier() -> None:
    for graph in (recurrent(LoopAttrs("i", T, 1, backward=(1,))), conditional(T), nested()):
        verify_graph(graph)
        check_types(graph)
        text = print_graph(graph)
        back = parse_graph(text, make_attrs)
        assert print_graph(back) == text
        check_types(back)


def test_the_same_at_every_thread_count() -> None:
    graph = recurrent(LoopAttrs("i", T, 1))
    given = inputs(5, 20011)
    one, two = (check_native(graph, given, threads=count)(**given) for count in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.tobytes() == b.tobytes()


def test_sizes_that_are_known_inside_only() -> None:
    g = GraphBuilder("body")
    g.add("bind_dim", g.input("n", tensor(I64)), attrs=BindDimAttrs("L", T))
    assert local_sizes(g.graph("n")) == {"L"}
    assert local_sizes(nested()) == {"i", "j"}
    assert local_sizes(conditional(T)) == {"i", "steps"}


def _growing() -> Graph:
    g = GraphBuilder("body")
    h = g.input("h", tensor(F32, N))
    return g.graph(g.add("concat", h, h, attrs=make_attrs("concat", {"axis": 0})))


def _uneven() -> Graph:
    g = GraphBuilder("body")
    attrs = make_attrs("full", {"shape": (STEP,), "value": 1.0, "dtype": "f32"})
    return g.graph(g.input("h", tensor(F32, N)), g.add("full", attrs=attrs))


def _same(*outputs: str) -> Graph:
    g = GraphBuilder("body")
    g.input("h", tensor(F32, N))
    return g.graph(*outputs)


ONE = LoopAttrs("i", T, 1)
WRONG = [
    ((), ONE, tensor(BOOL), "0 nested graphs"),
    ((_growing(),), ONE, tensor(BOOL), "h: f32.N. becomes"),
    ((_uneven(),), replace(ONE, trip_count_dim="L"), tensor(BOOL), "not the same in all steps"),
    ((_same("h", "h"),), ONE, tensor(BOOL), "has no name"),
    ((_same("h"),), ONE, tensor(F32), "condition is f32"),
    ((_same("h"),), replace(ONE, conditional=True), tensor(BOOL), "gives 1 results"),
    ((_same("h", "h"),), replace(ONE, conditional=True), tensor(BOOL), "goes on by f32"),
    ((_same("h"),), replace(ONE, carried=2), tensor(BOOL), "gives 1 results"),
]


@for_each(("regions", "attrs", "begin", "message"), WRONG)
def test_malformed(regions, attrs, begin, message) -> None:
    g = GraphBuilder("f")
    h, c = g.input("h", tensor(F32, N)), g.input("c", begin)
    with pytest.raises(TypeCheckError, match=message):
        g.add_control("loop", [c, h], regions, attrs)
    with pytest.raises(TypeCheckError, match="no nested graph"):
        g.add("loop", c, attrs=attrs)
    with pytest.raises(TypeCheckError, match="takes 1 operands of 0"):
        g.add_control("loop", [c], [_same("h")], attrs)
