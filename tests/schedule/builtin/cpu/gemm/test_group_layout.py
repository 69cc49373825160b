"""Padded data of convolutions in groups lie group by group."""

from __future__ import annotations

import numpy as np

from tests.schedule.builtin.scheduled import check, scheduled
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.conv.sliding_window import WindowAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS


def _group_conv(pad: int) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 9, 9, 3, 4))
    w = g.constant(np.ones((3, 16, 4, 3, 3), np.float32))
    attrs = WindowAttrs((2, 2, 1), (pad, pad, 0) * 2, (1, 1, 1), "channels_last")
    return g.graph(g.add("group_conv", x, w, attrs=attrs))


def test_the_groups_of_padded_data_come_first() -> None:
    graph = _group_conv(1)
    (result,) = scheduled(graph, CPUS["x86-64-v4"])
    assert "group_conv.padded: f32[3, 2, 11, 11, 4]" in print_func(result.func)
    check(graph, {}, CPUS["x86-64-v4"])


def test_data_that_are_not_copied_stay_as_they_are() -> None:
    (result,) = scheduled(_group_conv(0), CPUS["x86-64-v4"])
    assert 'transform_layout("x0"' not in str(result.trace)
