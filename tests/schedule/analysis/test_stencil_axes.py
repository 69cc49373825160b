from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.analysis.stencil_axes import (
    match_stencil,
    moves_along_lanes,
    row_period,
    row_step,
)


def _pool(layout: str, stride: int) -> Graph:
    g = GraphBuilder("f")
    shape = (2, 5, 12, 18) if layout == "channels_first" else (2, 12, 18, 5)
    values = {"kernel": (3, 3), "strides": (stride, stride), "pads": (1,) * 4, "layout": layout}
    attrs = make_attrs("max_pool", {**values, "dilations": (1, 1)})
    return g.graph(g.add("max_pool", g.input("x", tensor(F32, *shape)), attrs=attrs))


@for_each(
    "layout, stride, column, line, step",
    [
        ("channels_first", 1, "18", 12, 1),
        ("channels_first", 2, "9", 6, 2),
        ("channels_last", 1, "5", 18, 1),
        ("channels_last", 2, "5", 9, 2),
    ],
)
def test_roles(layout: str, stride: int, column: str, line: int, step: int) -> None:
    ((func, constants),) = sources(_pool(layout, stride))
    graph = block_graph(func)
    block = next(b for b in graph.blocks if reductions(b))
    axes = match_stencil(block, graph, constants)
    assert axes is not None
    assert str(axes.column.extent) == column
    assert axes.line == line
    assert row_period(axes.data, axes.row) in (0, line)
    assert row_step(axes) == step
    assert moves_along_lanes(axes, block) == (layout == "channels_first")
    assert axes.padding is not None


def test_a_reduction_without_windows_is_none() -> None:
    g = GraphBuilder("f")
    attrs = make_attrs("reduce_sum", {"axes": (1,), "keepdims": False})
    ((func, constants),) = sources(
        g.graph(g.add("reduce_sum", g.input("x", tensor(F32, 8, 9)), attrs=attrs))
    )
    graph = block_graph(func)
    assert match_stencil(graph.blocks[0], graph, constants) is None
