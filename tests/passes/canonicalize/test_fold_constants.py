from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, I8, I32, I64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.fold_constants import fold_constants


def _folded(graph: Graph) -> list[np.ndarray] | None:
    """The outputs' values if all are constants after folding."""
    after = dce(fold_constants(graph, ON_CPU), ON_CPU)
    if after.nodes:
        return None
    return [after.constant_by_name[o].data for o in after.outputs]


def _fold_op(op: str, *arrays: np.ndarray, **values: object) -> np.ndarray | None:
    g = GraphBuilder("f")
    inputs = [g.constant(a) for a in arrays]
    found = _folded(g.graph(g.add(op, *inputs, attrs=make_attrs(op, values))))
    return None if found is None else found[0]


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = fold_constants(graph, ON_CPU)
    assert_same_results(graph, after)
    assert fold_constants(after, ON_CPU) is after


def test_chains_of_constants_are_computed():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 8))
    a, b = (g.constant(np.random.default_rng(i).random((8, 8), np.float32)) for i in (0, 1))
    w = g.add("add", g.add("matmul", a, b), a, name="w")
    graph = g.graph(g.add("matmul", x, w))
    after = dce(fold_constants(graph, ON_CPU), ON_CPU)
    assert [n.op for n in after.nodes] == ["matmul"]
    assert [c.name for c in after.constants] == ["w"]


WEIGHTS = np.arange(6000, dtype=np.float32).reshape(20, 300)


@for_each(
    ("op", "values", "expected"),
    [
        ("transpose", {"perm": (1, 0)}, WEIGHTS.T),
        ("reshape", {"shape": (300, 20)}, WEIGHTS.reshape(300, 20)),
        ("slice", {"starts": (1, 299), "stops": (20, -1), "steps": (3, -2)}, WEIGHTS[1::3, ::-2]),
        ("slice", {"starts": (5, 0), "stops": (5, 300), "steps": (1, 1)}, WEIGHTS[5:5]),
        ("expand", {"shape": (2, 20, 300)}, np.broadcast_to(WEIGHTS, (2, 20, 300))),
    ],
)
def test_rearrangements_are_views(op, values, expected):
    found = _fold_op(op, WEIGHTS, **values)
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert found.size == 0 or np.shares_memory(found, WEIGHTS)


def test_rearrangements_have_no_limit_but_computation_has():
    large = np.zeros((4096, 2048), np.float32)
    assert _fold_op("transpose", large, perm=(1, 0)) is not None
    assert _fold_op("neg", large) is None


def test_a_slice_out_of_bounds_reads_zeros():
    found = _fold_op("slice", np.ones(3, np.float32), starts=(1,), stops=(5,), steps=(1,))
    np.testing.assert_array_equal(found, [1, 1, 0, 0])


@for_each(
    ("op", "little", "much"),
    [
        ("expand", {"shape": (9, 1024)}, {"shape": (99, 1024)}),
        ("tile", {"repeats": (9, 1)}, {"repeats": (99, 1)}),
    ],
)
def test_what_grows_much_stays(op, little, much):
    small = np.ones((1, 1024), np.float32)
    assert _fold_op(op, small, **little) is not None
    assert _fold_op(op, small, **much) is None


def test_conversions():
    values = np.array([0.1, -2.5, 3e38, np.inf, np.nan], np.float32)
    for to in (F16, BF16):
        found = _fold_op("cast", values, to=to)
        with np.errstate(over="ignore"):
            expected = values.astype(to.numpy)
        assert found is not None
        assert found.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(_fold_op("cast", values[:2], to=I8), [0, -2])


def test_several_outputs_and_absent_inputs():
    g = GraphBuilder("f")
    x = g.constant(np.array([3.0, 1.0, 2.0], np.float32))
    values, indices = g.add_many("topk", x, attrs=make_attrs("topk", {"k": 2}))
    found = _folded(g.graph(values, indices))
    assert found is not None
    np.testing.assert_array_equal(found[0], [3, 2])
    np.testing.assert_array_equal(found[1], [0, 2])


def _dims(g: GraphBuilder, *values: object) -> str:
    return g.add("dims", attrs=make_attrs("dims", {"values": values, "shape": (len(values),)}))


def test_integers_made_of_sizes_become_constants():
    g = GraphBuilder("f")
    g.input("x", tensor(F32, Var("N"), 4))
    shape = _dims(g, Var("N"), 4)
    four = g.add(
        "slice", shape, attrs=make_attrs("slice", {"starts": (1,), "stops": (2,), "steps": (1,)})
    )
    y = g.add("cast", g.add("mul", four, four), attrs=make_attrs("cast", {"to": I32}))
    found = _folded(g.graph(y))
    assert found is not None
    assert found[0].dtype == np.int32
    np.testing.assert_array_equal(found[0], [16])


def test_symbolic_integers_become_one_node():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 4))
    shape = _dims(g, Var("N"), 4)
    y = g.add("mul", g.add("add", shape, shape), shape)
    z = g.add("cast", y, attrs=make_attrs("cast", {"to": I32}))
    graph = g.graph(z, g.add("relu", x))
    after = dce(fold_constants(graph, ON_CPU), ON_CPU)
    assert sorted(n.op for n in after.nodes) == ["cast", "dims", "relu"]
    assert fold_constants(after, ON_CPU) is after
    assert_same_results(graph, after)


def test_i64_arithmetic_on_data_is_left():
    g = GraphBuilder("f")
    x = g.input("x", tensor(I64, 4))
    graph = g.graph(g.add("add", x, x))
    assert fold_constants(graph, ON_CPU) is graph
