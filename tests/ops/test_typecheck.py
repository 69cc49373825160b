from __future__ import annotations

from dataclasses import replace

import pytest

from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError, UnsupportedError, VerifyError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.typecheck import check_types
from tilewright.passes.fuse import fuse


def _graph() -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 3))
    y = g.add("transpose", x, attrs=make_attrs("transpose", {"perm": (1, 0)}), name="y")
    return g.graph(g.add("matmul", x, y, name="z"))


def _with(graph: Graph, index: int, **changes: object) -> Graph:
    nodes = list(graph.nodes)
    nodes[index] = replace(nodes[index], **changes)  # type: ignore[arg-type]
    return graph.with_nodes(tuple(nodes))


def test_right_types():
    check_types(_graph())
    check_types(fuse(_graph(), ON_CPU))


def test_wrong_types():
    with pytest.raises(VerifyError, match=r"transpose 'y' is of type f32\[2, 3\]"):
        check_types(_with(_graph(), 0, types=(tensor(F32, 2, 3),)))
    with pytest.raises(VerifyError, match="takes TransposeAttrs"):
        check_types(_with(_graph(), 0, attrs=make_attrs("cast", {"to": "f32"})))
    with pytest.raises(TypeCheckError, match="matmul"):
        check_types(_with(_graph(), 1, inputs=("x", "x")))
    with pytest.raises(UnsupportedError, match="nonesuch"):
        check_types(_with(_graph(), 1, op="nonesuch"))


def test_groups_are_checked_inside_and_out():
    graph = fuse(_graph(), ON_CPU)
    last = len(graph.nodes) - 1
    with pytest.raises(VerifyError, match="its body gives"):
        check_types(_with(graph, last, types=(tensor(F32, 9),)))
    body = graph.nodes[last].regions[0]
    wrong = _with(body, len(body.nodes) - 1, types=(tensor(F32, 9),))
    with pytest.raises(VerifyError, match="its operator gives"):
        check_types(_with(graph, last, regions=(wrong,)))
