from __future__ import annotations

import numpy as np
import pytest

from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BOOL, F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.infer_types import bind_dims
from tilewright.passes.canonicalize.unify_dims import unify_dims

D, N, M = Var("D"), Var("N"), Var("M")


def _sum(a, b) -> GraphBuilder:
    g = GraphBuilder("f")
    g.add("add", g.input("x", tensor(F32, *a)), g.input("y", tensor(F32, *b)), name="z")
    return g


def test_names_of_inputs_become_one() -> None:
    after = unify_dims(_sum((N, 3), (M, 3)).graph("z"), ON_CPU)
    assert [str(v.type) for v in after.inputs] == ["f32[N, 3]", "f32[N, 3]"]
    assert after.checks == ()


def test_a_name_becomes_its_number() -> None:
    after = unify_dims(_sum((N,), (8,)).graph("z"), ON_CPU)
    assert [str(v.type) for v in after.inputs] == ["f32[8]", "f32[8]"]


def test_formulas_are_spelt_alike_and_stay_checked() -> None:
    graph = _sum((D, (D + 15) // 16), (D, (D + 31) // 32 * 2)).graph("z")
    after = unify_dims(graph, ON_CPU)
    assert after.tensor_type("z").shape[1] is (D + 31) // 32 * 2
    assert len(after.checks) == 1
    check_types(after)
    assert unify_dims(branchless := after, ON_CPU) is branchless


def test_branches_know_what_holds_around_them() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, D, (D + 15) // 16))
    y = g.input("y", tensor(F32, D, (D + 31) // 32 * 2))
    c = g.input("c", tensor(BOOL))
    g.add("add", x, y)
    regions = []
    for op in ("add", "sub"):
        b = GraphBuilder(op)
        a = b.input("a", g.type(x))
        d = b.input("b", g.type(y))
        regions.append(b.graph(b.add(op, a, d)))
    (z,) = g.add_control("if", [c, x, y], regions, IfAttrs())
    after = unify_dims(g.graph(z), ON_CPU)
    check_types(after)
    (n,) = (n for n in after.nodes if n.regions)
    assert n.type.shape[1] is (D + 31) // 32 * 2
    given = {"x": np.ones((32, 2), "f4"), "y": np.ones((32, 2), "f4"), "c": np.array(True)}
    np.testing.assert_array_equal(run_graph(after, given)[after.outputs[0]], 2)


def test_sizes_that_cannot_be() -> None:
    graph = _sum((D, (D + 15) // 16), (D, (D + 31) // 32 * 2)).graph("z")
    assert bind_dims(graph, {"D": 32}).checks == ()
    with pytest.raises(TypeCheckError, match="differ, with D = 8"):
        bind_dims(graph, {"D": 8})


def test_a_loop_gives_more_rows_than_a_check_behind_it_allows() -> None:
    body = GraphBuilder("body")
    row = body.add("relu", body.input("x", tensor(F32, 4)))
    region = body.graph(body.constant(np.array(True)), row)
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 4))
    late = LoopAttrs("i", const(9), 0, conditional=True, trip_count_dim="_late_0")
    (stack,) = g.add_control("loop", ["", x], [region], late)
    total = g.add("add", stack, g.input("y", tensor(F32, 2, 4)))
    after = unify_dims(g.graph(g.add("exp", stack), total), ON_CPU)
    check_types(after)
    assert [str(after.types[v]) for v in (stack, total)] == ["f32[_late_0, 4]", "f32[2, 4]"]
