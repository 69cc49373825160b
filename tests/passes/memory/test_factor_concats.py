from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.memory.test_eliminate_concat import ops, start
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.memory.eliminate_concat import eliminate_concat
from tilewright.passes.memory.factor_concats import MAX_PARTS, factor_concats


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    after = factor_concats(graph, ON_CPU)
    assert_same_results(graph, after)
    assert factor_concats(after, ON_CPU) is after


def test_layers_that_read_all_before_them_share_one_tensor() -> None:
    g, x = start()
    first, second = g.layer(x), g.layer(x, 48)
    two = g("concat", first, second, axis=1)
    third = g.layer(two, 16)
    three = g("concat", first, second, third, axis=1)
    graph = g.graph(g.layer(three))
    nested = factor_concats(graph, ON_CPU)
    assert nested.producer[three].inputs == (two, third)
    after = eliminate_concat(nested, ON_CPU)
    assert ops(after) == ["matmul", "matmul", "concat_view", "matmul", "concat_view", "matmul"]
    assert_same_results(graph, after)


def test_the_longest_run_is_taken_and_other_axes_are_not() -> None:
    g, x = start()
    a, b, c = g.layer(x), g.layer(x), g.layer(x)
    short, long = g("concat", b, c, axis=1), g("concat", a, b, c, axis=1)
    rows = g("concat", x, a, b, axis=0)
    all_of_them = g("concat", x, a, b, c, axis=1)
    graph = g.graph(short, long, rows, all_of_them)
    after = factor_concats(graph, ON_CPU)
    assert after.producer[long].inputs == (a, short)
    assert after.producer[rows].inputs == (x, a, b)
    assert after.producer[all_of_them].inputs == (x, long)
    assert_same_results(graph, after)


@pytest.mark.parametrize("count", [MAX_PARTS + 1, 2 * MAX_PARTS, MAX_PARTS**2 + 5])
def test_many_parts_are_joined_in_pieces(count: int) -> None:
    g, x = start(2)
    parts = [g("mul", x, x) for _ in range(count)]
    graph = g.graph(g("concat", *parts, axis=1))
    after = dce(factor_concats(graph, ON_CPU), ON_CPU)
    assert all(len(n.inputs) <= MAX_PARTS for n in after.nodes)
    assert ops(after).count("concat") >= 2
    assert_same_results(graph, after)
