"""Padded data whose windows step along the vectors lie phase by phase."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.builtin.scheduled import check, scheduled
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS


def _conv_in_groups(step: int, pad: int, dilation: int = 1, width: int = 21) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 6, 9, width))
    w = g.constant(np.random.default_rng(0).standard_normal((6, 2, 3, 3)).astype(np.float32))
    attrs = ConvAttrs((step, step), (pad,) * 4, (dilation,) * 2, groups=3)
    return g.graph(g.add("conv", x, w, attrs=attrs))


def _text(graph: Graph) -> str:
    (result,) = scheduled(graph, CPUS["x86-64-v3"])
    return print_func(result.func)


@pytest.mark.parametrize(("step", "dilation"), [(2, 1), (2, 3), (3, 1), (3, 2)])
@pytest.mark.parametrize("width", [16, 46])
def test_each_phase_of_a_line_is_contiguous(step: int, dilation: int, width: int) -> None:
    graph = _conv_in_groups(step, 1, dilation, width)
    phase = {16: -(-18 // step), 46: 48 // step}[width]
    assert f"group_conv.padded: f32[2, 6, 11, {step}, {phase}]" in _text(graph)
    check(graph, {}, CPUS["x86-64-v3"])


def test_windows_that_do_not_step_have_one_phase() -> None:
    assert "group_conv.padded: f32[2, 6, 11, 23]" in _text(_conv_in_groups(1, 1))


def test_data_without_padding_are_copied_too() -> None:
    graph = _conv_in_groups(2, 0)
    assert "f32[2, 6, 9, 2, 11]" in _text(graph)
    check(graph, {}, CPUS["x86-64-v3"])
