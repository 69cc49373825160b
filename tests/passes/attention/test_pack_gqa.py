from __future__ import annotations

import pytest

from tests.passes.contexts import ON_CPU, ON_GPU
from tests.passes.random_graphs import assert_same_results
from tilewright.arith.expr import const
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.attention.fold_repeat_kv import fold_repeat_kv
from tilewright.passes.attention.pack_gqa import pack_gqa
from tilewright.passes.canonicalize.dce import dce

HEADS, GROUP, SIZE = 2, 3, 8
ALL = HEADS * GROUP
TURNED = (0, 2, 1, 3)


def _repeated(g: GraphBuilder, x: str, keys: int) -> str:
    one, more = ((1, HEADS, n, keys, SIZE) for n in (1, GROUP))
    x = g.add("reshape", x, attrs=make_attrs("reshape", {"shape": one}))
    x = g.add("expand", x, attrs=make_attrs("expand", {"shape": more}))
    return g.add("reshape", x, attrs=make_attrs("reshape", {"shape": (1, ALL, keys, SIZE)}))


def _graph(
    queries: int = 1,
    keys: int = 20,
    mask: tuple[int, ...] = (),
    turned: bool = False,
    dtype: DType = F16,
    **attrs: object,
) -> Graph:
    g = GraphBuilder("f")
    shape = (1, queries, ALL, SIZE) if turned else (1, ALL, queries, SIZE)
    q = g.input("q", tensor(dtype, *shape))
    k, v = (g.input(n, tensor(dtype, 1, HEADS, keys, SIZE)) for n in "kv")
    inputs = [q, *(_repeated(g, x, keys) for x in (k, v))]
    inputs += [g.input("m", tensor(F32, *mask))] if mask else []
    order = TURNED if turned else ()
    given = {"scale": 0.5, "q_perm": order, "y_perm": order, **attrs}
    return g.graph(g.add("fused_attention", *inputs, attrs=FusedAttentionAttrs(**given)))


def _packed(graph: Graph) -> Graph:
    return pack_gqa(fold_repeat_kv(graph, ON_GPU), ON_GPU)


def _attention(graph: Graph) -> Node:
    return next(n for n in _packed(graph).nodes if n.op == "fused_attention")


def _joined(graph: Graph) -> Node:
    after = dce(_packed(graph), ON_CPU)
    assert_same_results(graph, after, rtol=1e-4)
    return _attention(graph)


@pytest.mark.parametrize("turned", [False, True])
def test_one_query_of_each_head_is_a_row(turned: bool) -> None:
    node = _joined(_graph(turned=turned))
    assert [str(d) for d in node.type.shape] == ["1", str(HEADS), str(GROUP), str(SIZE)]


def test_several_queries() -> None:
    assert _joined(_graph(4)).type.rank == 4
    # Their rows would not lie one behind the other.
    assert _attention(_graph(4, turned=True)).type.rank == 5
    assert _attention(_graph(30)).type.rank == 5


@pytest.mark.parametrize(
    ("queries", "mask", "rank"),
    [
        (1, (20,), 4),
        (1, (1, 1, 1, 20), 4),
        (1, (ALL, 1, 20), 4),
        (4, (1, 20), 4),
        (4, (4, 20), 5),
        (4, (ALL, 1, 20), 5),
    ],
)
def test_masks(queries: int, mask: tuple[int, ...], rank: int) -> None:
    found = _joined if rank == 4 else _attention
    assert found(_graph(queries, mask=mask)).type.rank == rank


def test_bands() -> None:
    seen = _joined(_graph(window_right=0, offset=const(19)))
    assert seen.type.rank == 4
    assert isinstance(seen.attrs, FusedAttentionAttrs)
    assert seen.attrs.window_right < 0
    assert _attention(_graph(window_right=0, offset=const(18))).type.rank == 5
    assert _attention(_graph(2, window_right=0, offset=const(18))).type.rank == 5
    assert _attention(_graph(window_left=4, offset=const(19))).type.rank == 5


def test_attention_that_tensor_cores_do_not_compute_is_left_to_others() -> None:
    assert _attention(_graph(dtype=F32)).type.rank == 5
