from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32, I64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs
from tilewright.passes.memory.eliminate_concat import eliminate_concat


class _Maker(GraphBuilder):
    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)

    def layer(self, x: str, width: int = 32) -> str:
        """A product with constant weights: a kernel of its own."""
        inner = int(str(self.type(x).shape[-1]))
        weights = np.random.default_rng(inner).standard_normal((inner, width), dtype=np.float32)
        return self("matmul", x, self.constant(weights))


def start(width: int = 32) -> tuple[_Maker, str]:
    g = _Maker("f")
    return g, g.input("x", tensor(F32, 6, width))


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def cut(g: _Maker, x: str, first: int, last: int) -> str:
    """Columns of a matrix."""
    return g("slice", x, starts=(0, first), stops=(6, last), steps=(1, 1))


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = copy_aliased_outputs(random_graph(seed), ON_CPU)
    after = eliminate_concat(graph, ON_CPU)
    assert_same_results(graph, after)
    assert eliminate_concat(after, ON_CPU) is after


@for_each("computed", [False, True])
def test_what_is_looked_up_at_computed_indices_is_joined(computed: bool) -> None:
    g = _Maker("f")
    given = g.input("i", tensor(I64, 6, 2))
    indices = [cut(g, given, c, c + 1) if computed else given for c in (0, 1)]
    tables = (np.full((9, 32), n, np.float32) for n in (1, 2))
    pairs = zip(tables, indices, strict=True)
    rows = [g("gather", g.constant(t), i, axis=0) for t, i in pairs]
    halves = [g("cast", x, to=F16) for x in rows]
    graph = g.graph(g("concat", *halves, axis=1))
    after = eliminate_concat(copy_aliased_outputs(graph, ON_CPU), ON_CPU)
    assert ("concat_view" in ops(after)) == computed
    assert_same_results(graph, after)


def test_a_value_lies_in_one_place_and_is_copied_into_others() -> None:
    g, x = start()
    y, z = g.layer(x), g.layer(x, 64)
    one, other = g("concat", y, z, axis=1), g("concat", z, y, axis=1)
    graph = g.graph(g.layer(one), g.layer(other))
    after = eliminate_concat(graph, ON_CPU)
    assert ops(after).count("concat_view") == 1  # the second would only be copies
    assert_same_results(graph, after)
    more = g("concat", g.layer(x, 16), y, x, axis=1)
    after = eliminate_concat(g.graph(g.layer(one), g.layer(more)), ON_CPU)
    assert ops(after).count("concat_view") == 2
    assert ops(after).count("identity") == 2  # one of y's two places, and the input


def test_pieces_of_a_join_are_not_copied_again() -> None:
    g, x = start()
    inner = g("concat", g.layer(x), g.layer(x, 48), axis=1)
    graph = g.graph(g.layer(g("concat", inner, g.layer(x, 16), axis=1)))
    after = eliminate_concat(graph, ON_CPU)
    assert ops(after).count("concat_view") == 2
    assert "identity" not in ops(after)
    assert_same_results(graph, after)


def test_long_chains_before_a_join() -> None:
    g, x = start()
    y = x
    for _ in range(3000):
        y = g("neg", y)
    graph = g.graph(g("relu", g("concat", y, g.layer(x), axis=1)))
    assert eliminate_concat(graph, ON_CPU) is graph


def test_given_places_and_twice_the_same_are_copied() -> None:
    g, x = start()
    y = g.layer(x)
    joined = g("concat", y, x, y, g.layer(x, 16), axis=1)
    after = eliminate_concat(g.graph(g.layer(joined), y), ON_CPU)
    assert ops(after).count("identity") == 3
    assert ops(after).count("concat_view") == 1


def test_what_a_reader_computes_itself_stays_there() -> None:
    g, x = start()
    parts = [cut(g, x, 16, 32), g("neg", cut(g, x, 0, 16))]
    rotated = g("add", g("concat", *parts, axis=1), x)
    graph = g.graph(rotated)
    assert eliminate_concat(graph, ON_CPU) is graph
    products = g("relu", g("concat", g.layer(x), g.layer(x, 16), axis=1))
    assert "concat_view" in ops(eliminate_concat(g.graph(products), ON_CPU))


def test_what_is_seen_through_a_view_is_stored_anyway() -> None:
    g = _Maker("f")
    turned = [g("transpose", g.input(f"y{i}", tensor(F32, 32, 6)), perm=(1, 0)) for i in range(3)]
    rows = [g("reshape", t, shape=(6, 1, 32)) for t in turned]
    stacked = g("concat", *rows, axis=1)
    graph = g.graph(g("matmul", stacked, g("transpose", stacked, perm=(0, 2, 1))))
    after = eliminate_concat(graph, ON_CPU)
    assert ops(after).count("concat_view") == 1
    assert "concat" not in ops(after)
    assert "identity" not in ops(after)
    assert_same_results(graph, after)
    plain = g("concat", *turned, axis=1)  # its kernel reads the inputs themselves
    assert "concat" in ops(eliminate_concat(g.graph(g.layer(plain), g.layer(plain)), ON_CPU))


def test_short_pieces_are_copied() -> None:
    g, x = start()
    narrow = g.layer(g("concat", g.layer(x, 8), g.layer(x), axis=1))
    graph = g.graph(narrow, g.layer(cut(g, x, 0, 8)))
    assert eliminate_concat(graph, ON_CPU) is graph


def test_rows_of_a_larger_tensor_may_be_short() -> None:
    g, x = start(2)
    rows = g("concat", g.layer(x, 2), g.layer(x, 2), axis=0)
    assert "concat_view" in ops(eliminate_concat(g.graph(g.layer(rows)), ON_CPU))


def test_slices_are_read_where_they_lie() -> None:
    g, x = start(64)
    left, right = cut(g, x, 0, 32), cut(g, x, 32, 64)
    graph = g.graph(g.layer(left), g("add", g("relu", right), g("exp", right)))
    after = eliminate_concat(graph, ON_CPU)
    assert ops(after).count("slice_view") == 2
    assert_same_results(graph, after)


def test_outputs_and_steps_are_copied() -> None:
    g, x = start(64)
    steps = g("slice", x, starts=(0, 0), stops=(6, 64), steps=(1, 2))
    graph = g.graph(g.layer(steps), cut(g, x, 0, 32))
    assert eliminate_concat(graph, ON_CPU) is graph


@for_each(
    ("op", "values", "taken"),
    [
        ("reshape", {"shape": (12, 16)}, False),
        ("reshape", {"shape": (6, 1, 32)}, True),
        ("cumsum", {"axis": 1}, False),
        ("transpose", {"perm": (1, 0)}, True),
    ],
)
def test_gaps_only_where_kernels_take_them(op: str, values: dict[str, object], taken: bool) -> None:
    g, x = start(64)
    left = cut(g, x, 0, 32)
    graph = g.graph(g.layer(g(op, left, **values)), g.layer(left))
    assert ("slice_view" in ops(eliminate_concat(graph, ON_CPU))) == taken


def test_sizes_that_a_run_gives() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, Var("N"), 32))
    joined = g("concat", g.layer(x), g.layer(x, 48), axis=1)
    graph = g.graph(g.layer(joined))
    assert "concat_view" in ops(eliminate_concat(graph, ON_CPU))
