from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import assert_same_results
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.attention.fold_repeat_kv import fold_repeat_kv
from tilewright.passes.canonicalize.dce import dce

HEADS, GROUP, SIZE = 2, 3, 4
ALL = HEADS * GROUP
TURN = make_attrs("transpose", {"perm": (0, 2, 1, 3)})


def _reshape(g: GraphBuilder, x: str, *shape: object) -> str:
    return g.add("reshape", x, attrs=make_attrs("reshape", {"shape": shape}))


def _repeated(g: GraphBuilder, x: str, length: object, interleaved: bool = True) -> str:
    shape = (2, HEADS, GROUP, length, SIZE) if interleaved else (2, GROUP, HEADS, length, SIZE)
    one = (2, HEADS, 1, length, SIZE) if interleaved else (2, 1, HEADS, length, SIZE)
    wide = g.add("expand", _reshape(g, x, *one), attrs=make_attrs("expand", {"shape": shape}))
    return _reshape(g, wide, 2, ALL, length, SIZE)


def _graph(
    queries: object = 5,
    keys: object = 7,
    mask: tuple[object, ...] = (),
    turned: bool = True,
    interleaved: bool = True,
) -> Graph:
    g = GraphBuilder("f")
    if turned:
        q = g.input("q", tensor(F32, 2, queries, ALL, SIZE))
        k, v = (
            g.add("transpose", g.input(n, tensor(F32, 2, keys, HEADS, SIZE)), attrs=TURN)
            for n in ("keys", "values")
        )
    else:
        q = g.input("q", tensor(F32, 2, ALL, queries, SIZE))
        k, v = (g.input(n, tensor(F32, 2, HEADS, keys, SIZE)) for n in ("keys", "values"))
    inputs = [q, *(_repeated(g, x, keys, interleaved) for x in (k, v))]
    if mask:
        inputs.append(g.input("m", tensor(F32, *mask)))
    order = (0, 2, 1, 3) if turned else ()
    return g.graph(
        g.add(
            "fused_attention", *inputs, attrs=FusedAttentionAttrs(0.5, q_perm=order, y_perm=order)
        )
    )


def _shared(graph: Graph) -> Node:
    after = dce(fold_repeat_kv(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert fold_repeat_kv(after, ON_CPU) is after
    assert {n.op for n in after.nodes} <= {"fused_attention", "reshape"} | {"transpose"}
    return next(n for n in after.nodes if n.op == "fused_attention")


@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_repeated_or_turned_round(turned: bool) -> None:
    node = _shared(_graph(turned=turned))
    assert node.type.rank == 5
    assert bool(node.attrs.k_perm) == turned


@pytest.mark.parametrize(
    "mask", [(7,), (5, 7), (1, 5, 7), (ALL, 5, 7), (2, 1, 1, 7), (2, ALL, 5, 1), (1, ALL, 1, 1)]
)
def test_masks(mask: tuple[int, ...]) -> None:
    _shared(_graph(mask=mask))


def test_symbolic_lengths() -> None:
    _shared(_graph(Var("N"), Var("N"), (2, 1, Var("N"), Var("N"))))


@pytest.mark.parametrize("lengths", [(5, 7), (1, 33), (40, 70)])
def test_in_machine_code(lengths: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    graph = fold_repeat_kv(_graph(*lengths), ON_CPU)
    arrays = {
        n: rng.standard_normal((2, lengths[n != "q"], ALL if n == "q" else HEADS, SIZE)).astype(
            "f4"
        )
        for n in ("q", "keys", "values")
    }
    with check_native(graph, arrays):
        pass


def test_what_is_repeated_otherwise_stays() -> None:
    graph = _graph(interleaved=False)
    assert fold_repeat_kv(graph, ON_CPU) is graph
    plain = GraphBuilder("f")
    q, k, v = (plain.input(n, tensor(F32, 2, ALL, 5, SIZE)) for n in ("q", "keys", "values"))
    graph = plain.graph(plain.add("fused_attention", q, k, v, attrs=FusedAttentionAttrs()))
    assert fold_repeat_kv(graph, ON_CPU) is graph
